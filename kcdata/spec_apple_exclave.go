package kcdata

type exclavesInfo struct {
	SCID         uint64 `kc:"tei_scid"`
	ThreadOffset uint32 `kc:"tei_thread_offset"`
	Flags        uint32 `kc:"tei_flags"`
}

type exclavesCrashInfo struct {
	SCID     uint64 `kc:"tcei_scid"`
	ThreadID uint64 `kc:"tcei_thread_id"`
	Flags    uint32 `kc:"tcei_flags"`
}

type exclaveSCResult struct {
	ID    uint64 `kc:"esc_id"`
	Flags uint64 `kc:"esc_flags"`
}

type exclaveIPCStackEntry struct {
	ASID         uint64 `kc:"eise_asid"`
	TNID         uint64 `kc:"eise_tnid"`
	InvocationID uint64 `kc:"eise_invocationid"`
	Flags        uint64 `kc:"eise_flags"`
}

type exclaveAddressSpace struct {
	ID       uint64 `kc:"eas_id"`
	Flags    uint64 `kc:"eas_flags"`
	LayoutID uint64 `kc:"eas_layoutid"`
	Slide    uint64 `kc:"eas_slide"`
	ASRoot   uint64 `kc:"eas_asroot"`
}

type exclaveTextLayout struct {
	LayoutID         uint64 `kc:"layout_id"`
	Flags            uint64 `kc:"etl_flags"`
	SharedCacheIndex uint32 `kc:"sharedcache_index"`
}

type exclaveTextSegment struct {
	UUID           [16]byte `kc:"layoutSegment_uuid"`
	LoadAddress    uint64   `kc:"layoutSegment_loadAddress"`
	RawLoadAddress uint64   `kc:"layoutSegment_rawLoadAddress"`
}

func exclaveSpecs() []Spec {
	return []Spec{
		plainSpec(TypeExclaves, "EXCLAVES", "threads_exclave", KindContainer),
		plainSpec(TypeExclaveSCResult, "EXCLAVE_SCRESULT", "thread_exclave", KindContainer),
		plainSpec(TypeExclaveIPCStackEntry, "EXCLAVE_IPCSTACKENTRY", "exclave_ipcstackentry", KindContainer),
		plainSpec(TypeExclaveAddressSpace, "EXCLAVE_ADDRESSSPACE", "exclave_addressspace", KindContainer),
		plainSpec(TypeExclaveTextLayout, "EXCLAVE_TEXTLAYOUT", "exclave_textlayout", KindContainer),
		structSpec(TypeExclavesThreadinfo, "KERN_EXCLAVES_THREADINFO", "exclaves_thread_info", exclavesInfo{}),
		structSpec(TypeExclavesCrashThreadinfo, "KERN_EXCLAVES_CRASH_THREADINFO", "STACKSHOT_KCTYPE_KERN_EXCLAVES_CRASH_THREADINFO", exclavesCrashInfo{}),
		structSpec(TypeExclaveSCResultInfo, "EXCLAVE_SCRESULT_INFO", "exclave_scresult_info", exclaveSCResult{}),
		structSpec(TypeExclaveIPCStackInfo, "EXCLAVE_IPCSTACKENTRY_INFO", "exclave_ipcstackentry_info", exclaveIPCStackEntry{}),
		structSpec(TypeExclaveECStack, "EXCLAVE_IPCSTACKENTRY_ECSTACK", "secure_ecstack_entry", stackLR64{}),
		structSpec(TypeExclaveAddressSpaceInfo, "EXCLAVE_ADDRESSSPACE_INFO", "exclave_addressspace_info", exclaveAddressSpace{}),
		plainSpec(TypeExclaveAddressSpaceName, "EXCLAVE_ADDRESSSPACE_NAME", "exclave_addressspace_name", KindString),
		structSpec(TypeExclaveTextLayoutInfo, "EXCLAVE_TEXTLAYOUT_INFO", "exclave_textlayout_info", exclaveTextLayout{}, 16),
		structSpec(TypeExclaveTextLayoutSegs, "EXCLAVE_TEXTLAYOUT_SEGMENTS", "exclave_textlayout_segments", exclaveTextSegment{}, 24),
	}
}
