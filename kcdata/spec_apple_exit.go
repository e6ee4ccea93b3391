package kcdata

const exitReason = `
	uint32_t ers_namespace;
	uint64_t ers_code, ers_flags;`

const exitCodesigning = `
	uint64_t ceri_virt_addr, ceri_file_offset;
	char ceri_pathname[1024], ceri_filename[1024];
	uint64_t ceri_codesig_modtime_secs, ceri_codesig_modtime_nsecs, ceri_page_modtime_secs,
		ceri_page_modtime_nsecs;
	uint8_t ceri_path_truncated, ceri_object_codesigned, ceri_page_codesig_validated,
		ceri_page_codesig_tainted, ceri_page_codesig_nx, ceri_page_wpmapped, ceri_page_slid,
		ceri_page_dirty;
	uint32_t ceri_page_shadow_depth;`

func exitSpecs() []Spec {
	return []Spec{
		declared(0x1001, "EXIT_REASON_SNAPSHOT", "exit_reason_basic_info", exitReason),
		plainSpec(0x1002, "EXIT_REASON_USER_DESC", "exit_reason_user_description", KindString),
		plainSpec(0x1003, "EXIT_REASON_USER_PAYLOAD", "exit_reason_user_payload", KindBytes),
		declared(0x1004, "EXIT_REASON_CODESIGNING_INFO", "exit_reason_codesigning_info", exitCodesigning),
		plainSpec(0x1005, "EXIT_REASON_WORKLOOP_ID", "exit_reason_workloop_id", KindUint64),
		plainSpec(0x1006, "EXIT_REASON_DISPATCH_QUEUE_NO", "exit_reason_dispatch_queue_no", KindUint64),
	}
}
