// Command reader shows a stackshot file as JSON. It was made from docs/format.md and
// nothing else, and imports nothing of this project: it shows that the page is enough.
//
//	go run . FILE
package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

type field struct {
	name         string
	elem         uint8
	offset, size int // of one element
	count        int // -1: not an array
}

type record struct {
	name   string
	fields []field
}

// container is a TASK, a TRANSITIONING_TASK, a THREAD, or the file itself.
type container struct {
	typ   uint32
	id    uint64
	items map[string]any
	in    []*container
}

type reader struct {
	records map[uint32]record
	open    []*container
}

var le = binary.LittleEndian

const (
	plainMagic, zlibMagic, end         = 0x59a25807, 0x434f4d50, 0xf19158ed
	typeDefinition, begin, close       = 0x12, 0x13, 0x14
	task, thread, transitioning        = 0x903, 0x904, 0x931
	firstDesc, lastDesc, array, arrayF = 0x1, 0x6, 0x20, 0x2f
)

// apple are the records of Apple's: names of uint64 fields, or name:type.
var apple = map[uint32]string{
	0x32: "mach_timebase_info numer:u4 denom:u4",
	0x33: "mach_absolute_time value", 0x35: "usecs_since_epoch value", 0x910: "kernel_page_size value:u4",
	0x80f: "p_path text", 0x909: "pth_name text", 0x90e: "boot_args text", 0x90f: "osversion text",
	0x914: "kernel_stack_frames lr", 0x916: "user_stack_frames lr",
	0x905: "task_snapshot ts_unique_pid ts_ss_flags ts_user_time_in_terminated_thre ts_system_time_in_terminated_th ts_p_start_sec ts_task_size ts_max_resident_size ts_suspend_count:u4 ts_faults:u4 ts_pageins:u4 ts_cow_faults:u4 ts_was_throttled:u4 ts_did_throttle:u4 ts_latency_qos:u4 ts_pid:s4 ts_p_comm:c32",
	0x930: "transitioning_task_snapshot tts_unique_pid tts_ss_flags tts_transition_type tts_pid:s4 tts_p_comm:c32",
	0x906: "thread_snapshot ths_thread_id ths_wait_event ths_continuation ths_total_syscalls ths_voucher_identifier ths_dqserialnum ths_user_time ths_sys_time ths_ss_flags ths_last_run_time ths_last_made_runnable_time ths_state:u4 ths_sched_flags:u4 ths_base_priority:s2 ths_sched_priority:s2 ths_eqos:u1 ths_rqos:u1 ths_rqos_override:u1 ths_io_tier:u1 ths_thread_t ths_requested_policy ths_effective_policy",
	0x919: "cpu_times user_usec system_usec runnable_usec",
	0x91a: "stackshot_duration stackshot_duration stackshot_duration_outer stackshot_duration_prior",
	0x91d: "thread_waitinfo owner waiter context wait_type:u1 portlabel_id:s2 wait_flags:u4",
	0x92b: "stackshot_latency_collection latency_version setup_latency_mt total_task_iteration_latency_mt total_terminated_task_iteration task_queue_building_latency_mt terminated_task_queue_building_ cpu_wait_latency_mt main_cpu_number:s4 calling_cpu_number:s4 buffer_size buffer_used buffer_overhead buffer_count",
	0x92c: "stackshot_latency_task task_uniqueid setup_latency task_thread_count_loop_latency task_thread_data_loop_latency cur_tsnap_latency pmap_latency bsd_proc_ids_latency misc_latency misc2_latency end_latency",
	0x92d: "stackshot_latency_thread thread_id cur_thsnap1_latency dispatch_serial_latency dispatch_label_latency cur_thsnap2_latency thread_name_latency sur_times_latency user_stack_latency kernel_stack_latency misc_latency",
	0x956: "stackshot_latency_cpu cpu_number:s4 cluster_type:s4 init_latency_mt workqueue_latency_mt total_latency_mt total_cycles total_instrs tasks_processed threads_processed faulting_time_mt total_buf intercluster_buf_used",
}

func builtIn() map[uint32]record {
	out := map[uint32]record{}
	for id, text := range apple {
		words := strings.Fields(text)
		r, off := record{name: words[0]}, 0
		for _, w := range words[1:] {
			name, typ, _ := strings.Cut(w, ":")
			f := field{name: name, elem: 9, offset: off, size: 8, count: -1}
			switch {
			case name == "text":
				f = field{name: name, elem: 1, size: 1, count: 0}
			case typ == "c32":
				f.elem, f.size, f.count = 1, 1, 32
			case typ != "":
				f.size = int(typ[1] - '0')
				f.elem = map[string]uint8{"s1": 2, "u1": 3, "s2": 4, "u2": 5, "s4": 6, "u4": 7}[typ]
			}
			off += f.size * max(f.count, 1)
			r.fields = append(r.fields, f)
		}
		out[id] = r
	}
	return out
}

// plain takes a buffer out of its envelope.
func plain(b []byte) ([]byte, error) {
	switch {
	case len(b) < 16:
		return nil, errors.New("too short")
	case le.Uint32(b) == plainMagic:
		return b, nil
	case le.Uint32(b) == 0xfd2fb528:
		return nil, errors.New("a zstd frame: unpack it with zstd -d")
	case le.Uint32(b) != zlibMagic:
		return nil, errors.New("no stackshot")
	}
	sizes := map[string]uint64{}
	off := 16
	for ; len(b)-off >= 64 && le.Uint32(b[off:]) == 0x3; off += 64 {
		sizes[text(b[off+16:off+48])] = le.Uint64(b[off+48:])
	}
	off += 16
	n := sizes["kcd_c_totalout"]
	if sizes["kcd_c_type"] != 1 || off > len(b) || n > uint64(len(b)-off) {
		return nil, errors.New("a broken envelope")
	}
	z, err := zlib.NewReader(bytes.NewReader(b[off:][:n]))
	if err != nil {
		return nil, err
	}
	out := append([]byte{}, b[off-16:off]...)
	rest, err := io.ReadAll(io.LimitReader(z, int64(sizes["kcd_c_totalin"])))
	out = append(append(out, rest...), make([]byte, 16)...)
	le.PutUint32(out[len(out)-16:], end)
	return out, err
}

func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func (r *reader) read(b []byte) error {
	for off := 16 + int(le.Uint32(b[4:])); ; {
		if len(b)-off < 16 {
			return fmt.Errorf("at %d: no end marker", off)
		}
		typ, size, flags := le.Uint32(b[off:]), int64(le.Uint32(b[off+4:])), le.Uint64(b[off+8:])
		if typ == end {
			if len(r.open) != 1 {
				return errors.New("a container without an end")
			}
			return nil
		}
		if size > int64(len(b)-off-16) {
			return fmt.Errorf("at %d: an item of %d bytes", off, size)
		}
		if err := r.item(typ, flags, b[off+16:][:size]); err != nil {
			return fmt.Errorf("at %d: %w", off, err)
		}
		off += 16 + int(size)
	}
}

func (r *reader) item(typ uint32, flags uint64, b []byte) error {
	top := r.open[len(r.open)-1]
	switch {
	case typ == begin:
		c := &container{typ: le.Uint32(b), id: flags, items: map[string]any{}}
		top.in = append(top.in, c)
		r.open = append(r.open, c)
	case typ == close:
		if len(r.open) < 2 || top.id != flags {
			return errors.New("the end of another container")
		}
		r.open = r.open[:len(r.open)-1]
	case typ >= array && typ <= arrayF:
		pad, count := int(typ&15), int(uint32(flags))
		if pad > len(b) || count > 0 && (len(b)-pad)%count != 0 {
			return errors.New("a broken array")
		}
		r.array(top, uint32(flags>>32), count, b[:len(b)-pad])
	case int(flags&15) > len(b):
		return errors.New("more padding than bytes")
	case typ == typeDefinition:
		return r.define(b)
	case typ >= firstDesc && typ <= lastDesc:
		top.items[text(b[:32])] = le.Uint64(append(b[32:len(b)-int(flags&15):len(b)-int(flags&15)], make([]byte, 8)...))
	default:
		if rec, known := r.records[typ]; known {
			top.items[rec.name] = rec.value(b[:len(b)-int(flags&15)])
		}
	}
	return nil
}

func (r *reader) define(b []byte) error {
	n := int(le.Uint32(b[4:]))
	if n > (len(b)-40)/40 {
		return errors.New("a definition of more fields than it has")
	}
	rec := record{name: text(b[8:40])}
	for i := range n {
		f := b[40+40*i:]
		x := field{text(f[8:40]), f[1], int(le.Uint16(f[2:])), int(le.Uint32(f[4:])), -1}
		if f[0]&1 != 0 {
			x.count, x.size = x.size>>16, x.size&0xffff
		}
		rec.fields = append(rec.fields, x)
	}
	r.records[le.Uint32(b)] = rec
	return nil
}

// array adds the elements to those of the same record. Text is a list of strings, and
// bytes one of hexadecimal strings, one for each item.
func (r *reader) array(top *container, typ uint32, count int, b []byte) {
	rec, known := r.records[typ]
	if !known || count == 0 {
		return
	}
	list, _ := top.items[rec.name].([]any)
	if size := len(b) / count; size > 1 {
		for ; len(b) > 0; b = b[size:] {
			list = append(list, rec.value(b[:size]))
		}
	} else if rec.fields[0].elem == 1 {
		list = append(list, text(b))
	} else {
		list = append(list, hex.EncodeToString(b))
	}
	if rec.name == "linux_map_name" { // the path of the mapping before it
		maps, _ := top.items["linux_mapping"].([]any)
		maps[len(maps)-1].(map[string]any)["path_text"] = text(b)
	}
	top.items[rec.name] = list
}

// value is a record as its fields, or what its only field is.
func (rec record) value(b []byte) any {
	out := map[string]any{}
	for _, f := range rec.fields {
		switch {
		case f.elem == 1 && f.count == 0:
			return text(b)
		case f.offset+f.size*max(f.count, 1) > len(b):
		case f.elem == 1:
			out[f.name] = text(b[f.offset:][:f.count])
		case f.count < 0:
			out[f.name] = number(f, b[f.offset:])
		default:
			var list []any
			for i := range f.count {
				list = append(list, number(f, b[f.offset+i*f.size:]))
			}
			out[f.name] = list
		}
	}
	return out
}

func number(f field, b []byte) any {
	var w [8]byte
	copy(w[:], b[:f.size])
	if shift := 64 - 8*f.size; f.elem%2 == 0 {
		return int64(le.Uint64(w[:])<<shift) >> shift
	}
	return le.Uint64(w[:])
}

// resolve puts texts beside offsets in a string table.
func (c *container) resolve(table string, records ...string) {
	list, _ := c.items[table].([]any)
	if len(list) == 0 {
		return
	}
	strs, _ := hex.DecodeString(list[0].(string))
	for _, name := range records {
		all, _ := c.items[name].([]any)
		for _, x := range all {
			rec := x.(map[string]any)
			for _, key := range []string{"name", "module", "path", "file"} {
				if off, is := rec[key].(uint64); is && off > 0 && off < uint64(len(strs)) {
					rec[key+"_text"] = text(strs[off:])
				}
			}
		}
	}
}

// MarshalJSON gives the items, the id and what is in the container.
func (c *container) MarshalJSON() ([]byte, error) {
	c.resolve("linux_strings", "linux_symbol", "linux_module", "linux_cgroup")
	c.resolve("linux_map_strings", "linux_mapping", "linux_user_symbol")
	c.items["id"], c.items["type"], c.items["in"] = c.id, c.typ, c.in
	return json.Marshal(c.items)
}

func main() {
	b, err := os.ReadFile(os.Args[1])
	if err == nil {
		b, err = plain(b)
	}
	r := &reader{builtIn(), []*container{{items: map[string]any{}}}}
	if err == nil {
		err = r.read(b)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r.open[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
