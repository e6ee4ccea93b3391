package kcdata

// In the files spec_apple_*.go a type that code here reads or writes has a constant, and a
// struct if it has fields. All others have their id, and their fields as the public
// headers declare them.

// Timebase converts ticks: ns = ticks × Numer / Denom.
type Timebase struct {
	Numer uint32 `kc:"numer"`
	Denom uint32 `kc:"denom"`
}

// Names and magics; the key of a magic is that of the whole buffer.
func genericSpecs() []Spec {
	return []Spec{
		plainSpec(MagicStackshot, "STACKSHOT", "kcdata_stackshot", KindMagic),
		plainSpec(MagicDeltaStackshot, "DELTA_STACKSHOT", "kcdata_delta_stackshot", KindMagic),
		plainSpec(MagicCompressed, "COMPRESSED", "KCDATA_BUFFER_BEGIN_COMPRESSED", KindMagic),
		plainSpec(MagicCrashinfo, "CRASHINFO", "kcdata_crashinfo", KindMagic),
		plainSpec(MagicBTInfo, "BTINFO", "kcdata_btinfo", KindMagic),
		plainSpec(MagicOSReason, "OS_REASON", "kcdata_reason", KindMagic),
		plainSpec(MagicXNUPost, "XNUPOST_CONFIG", "xnupost_testconfig", KindMagic),
		plainSpec(BufferEnd, "BUFFER_END", "KCDATA_TYPE_BUFFER_END", KindStructural),
		plainSpec(TypeInvalid, "INVALID", "KCDATA_TYPE_INVALID", KindStructural),
		plainSpec(TypeStringDesc, "STRING_DESC", "KCDATA_TYPE_STRING_DESC", KindDesc),
		plainSpec(TypeUint32Desc, "UINT32_DESC", "KCDATA_TYPE_UINT32_DESC", KindDesc),
		plainSpec(TypeUint64Desc, "UINT64_DESC", "KCDATA_TYPE_UINT64_DESC", KindDesc),
		plainSpec(TypeInt32Desc, "INT32_DESC", "KCDATA_TYPE_INT32_DESC", KindDesc),
		plainSpec(TypeInt64Desc, "INT64_DESC", "KCDATA_TYPE_INT64_DESC", KindDesc),
		plainSpec(TypeBytesDesc, "BINDATA_DESC", "KCDATA_TYPE_BINDATA_DESC", KindDesc),
		plainSpec(TypeArray, "ARRAY", "KCDATA_TYPE_ARRAY", KindStructural),
		plainSpec(TypeDefinition, "TYPEDEFINITION", "KCDATA_TYPE_TYPEDEFINITION", KindStructural),
		plainSpec(TypeContainerBegin, "CONTAINER_BEGIN", "KCDATA_TYPE_CONTAINER_BEGIN", KindStructural),
		plainSpec(TypeContainerEnd, "CONTAINER_END", "KCDATA_TYPE_CONTAINER_END", KindStructural),
		structSpec(TypeTimebase, "TIMEBASE", "mach_timebase_info", Timebase{}),
		plainSpec(TypeMachAbsoluteTime, "MACH_ABSOLUTE_TIME", "mach_absolute_time", KindUint64),
		declared(0x34, "TIMEVAL", "KCDATA_TYPE_TIMEVAL", `int64_t tv_sec, tv_usec`),
		plainSpec(TypeUsecsSinceEpoch, "USECS_SINCE_EPOCH", "usecs_since_epoch", KindUint64),
		plainSpec(0x36, "PID", "pid", KindInt32),
		plainSpec(0x37, "PROCNAME", "proc_name", KindString),
		plainSpec(TypeNested, "NESTED_KCDATA", "KCDATA_TYPE_NESTED_KCDATA", KindNested),
	}
}
