package collate

import (
	"io"
	"slices"

	"stackshot/internal/elfnote"
	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// buildID is what image.Cache keeps of a file for its build-id.
func buildID(r io.ReaderAt, _ int64) (any, error) {
	return elfnote.BuildID(r)
}

// write writes the load information: what was not read and why, the mappings over a
// string table of their own, and the perf map.
func (l *loaded) write(w *kcdata.StickyWriter, maps []kcdata.Mapping) {
	for _, s := range slices.Concat(l.maps, l.notes) {
		w.Text(kcdata.TypeLinuxEnrichFailed, s)
	}
	table, records := strtab.New(), make([]kcdata.LinuxMapping, 0, len(maps))
	for _, m := range maps {
		m.LinuxMapping.Path = table.Add(m.Path)
		records = append(records, m.LinuxMapping)
	}
	if len(records) > 0 {
		w.Array(kcdata.TypeLinuxMapping, records)
		w.PutBytes(kcdata.TypeLinuxMapStrings, table.Bytes())
	}
	w.Text(kcdata.TypeLinuxPerfMap, l.perfMap)
}
