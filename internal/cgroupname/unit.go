package cgroupname

import (
	"regexp"
	"strings"
)

// unitName matches a component that is a unit of systemd which has processes. A unit's name is
// shown as it is, escapes too: so systemctl takes it.
var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]+\.(service|scope|socket|mount|swap|slice)$`)

// userManager and userSlice match the groups of one user.
var (
	userManager = regexp.MustCompile(`^user@([0-9]+)\.service$`)
	userSlice   = regexp.MustCompile(`^user-([0-9]+)\.slice$`)
)

// unitPaths are examples: a path, and its short name.
var unitPaths = [][2]string{
	{"/system.slice/nginx.service", "nginx.service"},
	{"/system.slice/nginx.service/workers", "nginx.service"}, // a group that the service made
	{"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"},
	{"/system.slice/docker.service", "docker.service"},
	{"/system.slice/docker.socket", "docker.socket"},
	{"/system.slice/run-user.mount", "run-user.mount"},
	{"/system.slice", "system.slice"},
	{"/init.scope", "init.scope"},
	{"/user.slice/user-1000.slice/session-3.scope", "session-3.scope of user 1000"},
	{"/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service"},
	{"/user.slice/user-1000.slice/user@1000.service/app.slice/syncthing.service", "syncthing.service of user 1000"},
	{`/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox\x2d77.scope`, `app-gnome-firefox\x2d77.scope of user 1000`},
	{"/user.slice/user-1000.slice/user@1000.service/app.slice", "user@1000.service"},
	{"/user.slice/user-1000.slice", "user-1000.slice"},
	{"/batch.slice/nightly", "batch.slice"},
}

// unitOf is the unit that path is of: the innermost that is no slice, or else the innermost
// slice. "" if there is none.
func unitOf(path string) string {
	unit, slice, user := "", "", ""
	for part := range strings.SplitSeq(path, "/") {
		if !unitName.MatchString(part) {
			continue
		}
		if m := userSlice.FindStringSubmatch(part); m != nil {
			user = m[1]
		}
		switch inManager := userManager.MatchString(unit); {
		case strings.HasSuffix(part, ".slice"):
			slice = part
		case inManager && part == "init.scope": // the user's systemd itself
		default:
			unit = part
		}
	}
	switch {
	case unit == "":
		return slice
	case user != "" && !userManager.MatchString(unit):
		return unit + " of user " + user
	}
	return unit
}
