package kcdata

const uuidInfo64 = `
	uint64_t imageLoadAddress;
	uint8_t imageUUID[16];`

// sharedCacheLoadinfo keeps the names of its first versions, which Apple's
// decoder prints for all three.
const sharedCacheLoadinfo = `
	uint64_t imageLoadAddress;
	uint8_t imageUUID[16];
	uint64_t imageSlidBaseAddress, sharedCacheSlidFirstMapping;`

const sharedCacheInfo = `
	uint64_t sharedCacheSlide;
	uint8_t sharedCacheUUID[16];
	uint64_t sharedCacheUnreliableSlidBaseAddress, sharedCacheSlidFirstMapping;
	uint32_t sharedCacheID, sharedCacheFlags;`

const aotCacheInfo = `
	uint64_t x86SlidBaseAddress;
	uint8_t x86UUID[16];
	uint64_t aotSlidBaseAddress;
	uint8_t aotUUID[16];`

const aotInfo = `
	uint64_t x86LoadAddress, aotLoadAddress, aotImageSize;
	uint8_t aotImageKey[32];`

func imageSpecs() []Spec {
	const aot = "dyld_aot_cache_uuid_info"
	return []Spec{
		plainSpec(0x942, "SHAREDCACHE", "shared_caches", KindContainer), // id: region
		declared(TypeLibraryLoadinfo, "LIBRARY_LOADINFO", "dyld_load_info", `uint32_t imageLoadAddress; uint8_t imageUUID[16]`),
		declared(TypeLibraryLoadinfo64, "LIBRARY_LOADINFO64", "dyld_load_info", uuidInfo64),
		declared(0x39, "LIBRARY_AOTINFO", "dyld_aot_info", aotInfo),
		declared(TypeSharedCacheLoadinfo, "SHAREDCACHE_LOADINFO", "shared_cache_dyld_load_info", sharedCacheLoadinfo, 24, 32),
		declared(0x943, "SHAREDCACHE_INFO", "shared_cache_dyld_load_info", sharedCacheInfo),
		declared(0x944, "SHAREDCACHE_AOTINFO", aot, aotCacheInfo),
		plainSpec(0x945, "SHAREDCACHE_ID", "sharedCacheID", KindUint32),
		declared(0x927, "SYS_SHAREDCACHE_LAYOUT", "system_shared_cache_layout", uuidInfo64),
		declared(0x91c, "KERNELCACHE_LOADINFO", "kernelcache_load_info", uuidInfo64),
		declared(0x92e, "LOADINFO64_TEXT_EXEC", "dyld_load_info_text_exec", uuidInfo64),
		declared(0x92f, "AOTCACHE_LOADINFO", aot, aotCacheInfo),
		plainSpec(0x937, "DYLD_COMPACTINFO", "STACKSHOT_KCTYPE_DYLD_COMPACTINFO", KindBytes),
	}
}
