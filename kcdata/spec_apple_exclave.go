package kcdata

const exclavesInfo = `
	uint64_t tei_scid;
	uint32_t tei_thread_offset, tei_flags;`

const exclavesCrashInfo = `
	uint64_t tcei_scid, tcei_thread_id;
	uint32_t tcei_flags;`

const exclaveIPCStackEntry = `uint64_t eise_asid, eise_tnid, eise_invocationid, eise_flags`
const exclaveAddressSpace = `uint64_t eas_id, eas_flags, eas_layoutid, eas_slide, eas_asroot`

const exclaveTextLayout = `
	uint64_t layout_id, etl_flags;
	uint32_t sharedcache_index;`

const exclaveTextSegment = `
	uint8_t layoutSegment_uuid[16];
	uint64_t layoutSegment_loadAddress, layoutSegment_rawLoadAddress;`

func exclaveSpecs() []Spec {
	return []Spec{
		plainSpec(TypeExclaves, "EXCLAVES", "threads_exclave", KindContainer),
		plainSpec(0x94a, "EXCLAVE_SCRESULT", "thread_exclave", KindContainer),             // id: scheduling context
		plainSpec(0x94c, "EXCLAVE_IPCSTACKENTRY", "exclave_ipcstackentry", KindContainer), // id: index
		plainSpec(0x94f, "EXCLAVE_ADDRESSSPACE", "exclave_addressspace", KindContainer),   // id: address space
		plainSpec(0x952, "EXCLAVE_TEXTLAYOUT", "exclave_textlayout", KindContainer),       // id: layout
		declared(0x948, "KERN_EXCLAVES_THREADINFO", "exclaves_thread_info", exclavesInfo),
		declared(0x955, "KERN_EXCLAVES_CRASH_THREADINFO", "STACKSHOT_KCTYPE_KERN_EXCLAVES_CRASH_THREADINFO", exclavesCrashInfo),
		declared(0x94b, "EXCLAVE_SCRESULT_INFO", "exclave_scresult_info", `uint64_t esc_id, esc_flags`),
		declared(0x94d, "EXCLAVE_IPCSTACKENTRY_INFO", "exclave_ipcstackentry_info", exclaveIPCStackEntry),
		declared(0x94e, "EXCLAVE_IPCSTACKENTRY_ECSTACK", "secure_ecstack_entry", stackLR64),
		declared(0x950, "EXCLAVE_ADDRESSSPACE_INFO", "exclave_addressspace_info", exclaveAddressSpace),
		plainSpec(0x951, "EXCLAVE_ADDRESSSPACE_NAME", "exclave_addressspace_name", KindString),
		declared(0x953, "EXCLAVE_TEXTLAYOUT_INFO", "exclave_textlayout_info", exclaveTextLayout, 16),
		declared(0x954, "EXCLAVE_TEXTLAYOUT_SEGMENTS", "exclave_textlayout_segments", exclaveTextSegment, 24),
	}
}
