package cgroupname

import "regexp"

// row is one way in which a manager writes the name of a container into a path. Of its groups
// pod, id and name are what is shown.
type row struct {
	pattern *regexp.Regexp
	words   string      // "docker {id}"; of several words in braces those that the path does not have are left out with the word before
	paths   [][2]string // examples: a path, and its short name
}

// Parts of the patterns. A path has no empty components, so (?:^|/) begins a component, and
// (?:/|$) ends one.
const (
	begin = `(?:^|/)`
	end   = `(?:/|$)`
	id    = `(?P<id>[0-9a-f]{64})`
	// A pod's uid, in which the driver for systemd writes _ for -. Those of pods from files of
	// the kubelet are a hash.
	uid = `(?P<pod>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})`
)

const (
	sampleID  = "3f2a9c1b04d7e65f8a90b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f506"
	sampleUID = "1d2e3f40-5a6b-4c7d-8e9f-a0b1c2d3e4f5"
	systemUID = "1d2e3f40_5a6b_4c7d_8e9f_a0b1c2d3e4f5" // as in a slice
)

// table has the ways of containers. The first row that matches counts, so a pod comes before the
// container of the runtime that runs it. Units of systemd come after all rows (unit.go).
var table = []row{
	{ // The kubelet, with any runtime and both drivers; also inside another container (kind).
		regexp.MustCompile(`kubepods[^/]*(?:/[^/]+)*?[/-]pod` + uid + `(?:\.slice)?(?:[/:](?:[a-z-]+[-:])?` + id + `(?:\.scope)?)?` + end),
		"pod {pod} container {id}",
		[][2]string{
			{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + systemUID + ".slice/cri-containerd-" + sampleID + ".scope", "pod 1d2e3f40 container 3f2a9c1b04d7"},
			{"/kubepods.slice/kubepods-pod" + systemUID + ".slice/crio-" + sampleID + ".scope", "pod 1d2e3f40 container 3f2a9c1b04d7"},
			{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + systemUID + ".slice/docker-" + sampleID + ".scope", "pod 1d2e3f40 container 3f2a9c1b04d7"},
			{"/kubepods/burstable/pod" + sampleUID + "/" + sampleID, "pod 1d2e3f40 container 3f2a9c1b04d7"},
			{"/kubepods/pod" + sampleUID, "pod 1d2e3f40"},
			{"/kubepods/burstable/pod0f2b9d2c4e6a8b0c1d3e5f7a9b1c3d5e/" + sampleID, "pod 0f2b9d2c container 3f2a9c1b04d7"},
			{"/system.slice/containerd.service/kubepods-burstable-pod" + systemUID + ".slice:cri-containerd:" + sampleID, "pod 1d2e3f40 container 3f2a9c1b04d7"},
			{"/docker/" + sampleID + "/kubelet/kubepods/besteffort/pod" + sampleUID + "/" + sampleID, "pod 1d2e3f40 container 3f2a9c1b04d7"},
			{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + systemUID + ".slice/cri-containerd-" + sampleID + ".scope", "pod 1d2e3f40 container 3f2a9c1b04d7"},
		},
	},
	{ // Docker, with the driver for systemd and with cgroupfs.
		regexp.MustCompile(begin + `docker[-/]` + id + `(?:\.scope)?` + end),
		"docker {id}",
		[][2]string{
			{"/system.slice/docker-" + sampleID + ".scope", "docker 3f2a9c1b04d7"},
			{"/docker/" + sampleID, "docker 3f2a9c1b04d7"},
			{"/docker/" + sampleID + "/system.slice/nginx.service", "docker 3f2a9c1b04d7, nginx.service"},
			{"/system.slice/docker-" + sampleID + ".scope/init.scope", "docker 3f2a9c1b04d7, init.scope"},
			{"/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + sampleID + ".scope", "docker 3f2a9c1b04d7"},
		},
	},
	{ // Podman; the second form is in a pod of podman's.
		regexp.MustCompile(`(?:libpod_pod_(?P<pod>[0-9a-f]{64})\.slice/)?libpod-(?P<name>conmon-)?` + id + `(?:\.scope)?` + end),
		"podman pod {pod} {name} {id}",
		[][2]string{
			{"/machine.slice/libpod-" + sampleID + ".scope", "podman 3f2a9c1b04d7"},
			{"/machine.slice/libpod-" + sampleID + ".scope/container", "podman 3f2a9c1b04d7"},
			{"/machine.slice/libpod-conmon-" + sampleID + ".scope", "podman conmon 3f2a9c1b04d7"},
			{"/machine.slice/machine-libpod_pod_" + sampleID + ".slice/libpod-" + sampleID + ".scope", "podman pod 3f2a9c1b04d7 3f2a9c1b04d7"},
			{"/libpod_parent/libpod-" + sampleID, "podman 3f2a9c1b04d7"},
			{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + sampleID + ".scope/container", "podman 3f2a9c1b04d7"},
		},
	},
	{ // containerd without the kubelet: nerdctl, ctr, and the CRI outside of kubepods.
		regexp.MustCompile(begin + `(?:nerdctl-|cri-containerd-|k8s\.io/|moby/)` + id + `(?:\.scope)?` + end),
		"containerd {id}",
		[][2]string{
			{"/system.slice/nerdctl-" + sampleID + ".scope", "containerd 3f2a9c1b04d7"},
			{"/k8s.io/" + sampleID, "containerd 3f2a9c1b04d7"},
			{"/system.slice/cri-containerd-" + sampleID + ".scope", "containerd 3f2a9c1b04d7"},
		},
	},
	{ // CRI-O outside of kubepods.
		regexp.MustCompile(begin + `crio-(?P<name>conmon-)?` + id + `(?:\.scope)?` + end),
		"cri-o {name} {id}",
		[][2]string{
			{"/system.slice/crio-" + sampleID + ".scope", "cri-o 3f2a9c1b04d7"},
			{"/system.slice/crio-conmon-" + sampleID + ".scope", "cri-o conmon 3f2a9c1b04d7"},
		},
	},
	{ // LXC and LXD.
		regexp.MustCompile(begin + `lxc(?:/|\.payload[./]|\.monitor[./])(?P<name>[^/]+)(?:/ns)?` + end),
		"lxc {name}",
		[][2]string{
			{"/lxc/web", "lxc web"},
			{"/lxc/100/ns/system.slice/ssh.service", "lxc 100, ssh.service"},
			{"/lxc.payload.web/init.scope", "lxc web, init.scope"},
			{"/lxc.payload/web", "lxc web"},
			{"/lxc.monitor.web", "lxc web"},
		},
	},
	{ // systemd-nspawn and libvirt, by the registry of machines.
		regexp.MustCompile(begin + `(?:machine-(?P<name>[^/]+)\.scope|systemd-nspawn@(?P<pod>[^/]+)\.service)(?:/payload|/libvirt)?` + end),
		"machine {name} {pod}",
		[][2]string{
			{`/machine.slice/machine-qemu\x2d1\x2dweb.scope/libvirt/emulator`, `machine qemu-1-web`},
			{"/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service", "machine web, nginx.service"},
		},
	},
	{ // A container of an unknown manager, or in a group that somebody named: the number alone.
		regexp.MustCompile(begin + `(?:[a-z-]+-)?` + id + `(?:\.scope)?` + end),
		"container {id}",
		[][2]string{
			{"/batch/" + sampleID, "container 3f2a9c1b04d7"},
			{"/ecs/0123456789abcdef0123456789abcdef/" + sampleID, "container 3f2a9c1b04d7"},
		},
	},
}
