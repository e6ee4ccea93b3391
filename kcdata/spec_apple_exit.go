package kcdata

type exitReason struct {
	Namespace uint32 `kc:"ers_namespace"`
	Code      uint64 `kc:"ers_code"`
	Flags     uint64 `kc:"ers_flags"`
}

type exitCodesigning struct {
	VirtAddr         uint64     `kc:"ceri_virt_addr"`
	FileOffset       uint64     `kc:"ceri_file_offset"`
	Pathname         [1024]byte `kc:"ceri_pathname,char"`
	Filename         [1024]byte `kc:"ceri_filename,char"`
	CodesigSec       uint64     `kc:"ceri_codesig_modtime_secs"`
	CodesigNsec      uint64     `kc:"ceri_codesig_modtime_nsecs"`
	PageSec          uint64     `kc:"ceri_page_modtime_secs"`
	PageNsec         uint64     `kc:"ceri_page_modtime_nsecs"`
	PathTruncated    uint8      `kc:"ceri_path_truncated"`
	ObjectCodesigned uint8      `kc:"ceri_object_codesigned"`
	PageValidated    uint8      `kc:"ceri_page_codesig_validated"`
	PageTainted      uint8      `kc:"ceri_page_codesig_tainted"`
	PageNX           uint8      `kc:"ceri_page_codesig_nx"`
	PageWPMapped     uint8      `kc:"ceri_page_wpmapped"`
	PageSlid         uint8      `kc:"ceri_page_slid"`
	PageDirty        uint8      `kc:"ceri_page_dirty"`
	PageShadowDepth  uint32     `kc:"ceri_page_shadow_depth"`
}

func exitSpecs() []Spec {
	return []Spec{
		structSpec(TypeExitReasonSnapshot, "EXIT_REASON_SNAPSHOT", "exit_reason_basic_info", exitReason{}),
		plainSpec(TypeExitReasonUserDesc, "EXIT_REASON_USER_DESC", "exit_reason_user_description", KindString),
		plainSpec(TypeExitReasonUserPayload, "EXIT_REASON_USER_PAYLOAD", "exit_reason_user_payload", KindBytes),
		structSpec(TypeExitReasonCodesigning, "EXIT_REASON_CODESIGNING_INFO", "exit_reason_codesigning_info", exitCodesigning{}),
		plainSpec(TypeExitReasonWorkloopID, "EXIT_REASON_WORKLOOP_ID", "exit_reason_workloop_id", KindUint64),
		plainSpec(TypeExitReasonDispatchQNum, "EXIT_REASON_DISPATCH_QUEUE_NO", "exit_reason_dispatch_queue_no", KindUint64),
	}
}
