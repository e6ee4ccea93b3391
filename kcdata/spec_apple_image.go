package kcdata

type uuidInfo32 struct {
	LoadAddress uint32   `kc:"imageLoadAddress"`
	UUID        [16]byte `kc:"imageUUID"`
}

type uuidInfo64 struct {
	LoadAddress uint64   `kc:"imageLoadAddress"`
	UUID        [16]byte `kc:"imageUUID"`
}

// sharedCacheLoadinfo keeps the names of its first versions, which Apple's
// decoder prints for all three.
type sharedCacheLoadinfo struct {
	LoadAddress      uint64   `kc:"imageLoadAddress"`
	UUID             [16]byte `kc:"imageUUID"`
	SlidBaseAddress  uint64   `kc:"imageSlidBaseAddress"`
	SlidFirstMapping uint64   `kc:"sharedCacheSlidFirstMapping"`
}

type sharedCacheInfo struct {
	Slide              uint64   `kc:"sharedCacheSlide"`
	UUID               [16]byte `kc:"sharedCacheUUID"`
	UnreliableSlidBase uint64   `kc:"sharedCacheUnreliableSlidBaseAddress"`
	SlidFirstMapping   uint64   `kc:"sharedCacheSlidFirstMapping"`
	ID                 uint32   `kc:"sharedCacheID"`
	Flags              uint32   `kc:"sharedCacheFlags"`
}

type aotCacheInfo struct {
	X86SlidBase uint64   `kc:"x86SlidBaseAddress"`
	X86UUID     [16]byte `kc:"x86UUID"`
	AOTSlidBase uint64   `kc:"aotSlidBaseAddress"`
	AOTUUID     [16]byte `kc:"aotUUID"`
}

type aotInfo struct {
	X86LoadAddress uint64   `kc:"x86LoadAddress"`
	AOTLoadAddress uint64   `kc:"aotLoadAddress"`
	ImageSize      uint64   `kc:"aotImageSize"`
	ImageKey       [32]byte `kc:"aotImageKey"`
}

func imageSpecs() []Spec {
	const aot = "dyld_aot_cache_uuid_info"
	return []Spec{
		plainSpec(TypeSharedCache, "SHAREDCACHE", "shared_caches", KindContainer),
		structSpec(TypeLibraryLoadinfo, "LIBRARY_LOADINFO", "dyld_load_info", uuidInfo32{}),
		structSpec(TypeLibraryLoadinfo64, "LIBRARY_LOADINFO64", "dyld_load_info", uuidInfo64{}),
		structSpec(TypeLibraryAOTInfo, "LIBRARY_AOTINFO", "dyld_aot_info", aotInfo{}),
		structSpec(TypeSharedCacheLoadinfo, "SHAREDCACHE_LOADINFO", "shared_cache_dyld_load_info", sharedCacheLoadinfo{}, 24, 32),
		structSpec(TypeSharedCacheInfo, "SHAREDCACHE_INFO", "shared_cache_dyld_load_info", sharedCacheInfo{}),
		structSpec(TypeSharedCacheAOTInfo, "SHAREDCACHE_AOTINFO", aot, aotCacheInfo{}),
		plainSpec(TypeSharedCacheID, "SHAREDCACHE_ID", "sharedCacheID", KindUint32),
		structSpec(TypeSysSharedCacheLayout, "SYS_SHAREDCACHE_LAYOUT", "system_shared_cache_layout", uuidInfo64{}),
		structSpec(TypeKernelcacheLoadinfo, "KERNELCACHE_LOADINFO", "kernelcache_load_info", uuidInfo64{}),
		structSpec(TypeLoadinfo64TextExec, "LOADINFO64_TEXT_EXEC", "dyld_load_info_text_exec", uuidInfo64{}),
		structSpec(TypeAOTCacheLoadinfo, "AOTCACHE_LOADINFO", aot, aotCacheInfo{}),
		plainSpec(TypeDyldCompactInfo, "DYLD_COMPACTINFO", "STACKSHOT_KCTYPE_DYLD_COMPACTINFO", KindBytes),
	}
}
