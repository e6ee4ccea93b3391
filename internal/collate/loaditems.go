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
	id, err := elfnote.BuildID(r)
	if err != nil {
		return nil, err
	}
	return id, nil
}

// Records are the task's mappings as the file holds them, over its table.
func (l *Loaded) Records(t *TaskBytes, table *strtab.Table) []kcdata.LinuxMapping {
	out := make([]kcdata.LinuxMapping, 0, len(t.Maps))
	for _, m := range t.Maps {
		m.LinuxMapping.Path = table.Add(m.Path)
		out = append(out, m.LinuxMapping)
	}
	return out
}

// Write writes the load information.
func (l *Loaded) Write(w *kcdata.StickyWriter, records []kcdata.LinuxMapping, table *strtab.Table) {
	for _, s := range slices.Concat(l.Maps, l.Notes) {
		w.Text(kcdata.TypeLinuxEnrichFailed, s)
	}
	if len(records) > 0 {
		w.Array(kcdata.TypeLinuxMapping, records)
		w.PutBytes(kcdata.TypeLinuxMapStrings, table.Bytes())
	}
	w.Text(kcdata.TypeLinuxPerfMap, l.perfMap)
}
