//go:build linux

package userlab

// Healthy are processes that wait for each other as they should, by what they are. Each is a
// list of steps for [Hangs.StartHealthy].
func Healthy() map[string][]string {
	return map[string][]string{
		"pipelines": {"all pipe p", "all pipe q", "all pipe r", "a pump - p.w", "b pump p.r q.w", "c pump q.r r.w", "d pump r.r -"},
		// Servers of which each waits for one client, some of them idle, and for the next one.
		"rpc-unix": rpc("unix"), "rpc-tcp": rpc("tcp4"),
		// A request goes through three.
		"chain": {"all pair a b unix", "client ask a 300", "server answer b"},
		"bus": {"all pair x y unix 6", "all pair x y1 unix", "all pair x y2 unix", "hub bus x", "one rider y1 4000", "two rider y2 9000",
			"idle has y", "idle nap"},
		"jobs": {"main file f", "w*6 locked f", "main nap"},
		// As flock(1) and xargs(1) do: jobs behind one that works, a writer whose reader does something else
		// for a time, or waits for a child that does.
		"queues": {"all pipe p", "all pipe q", "cron file f", "cron flock f", "reader has p.r", "xargs has q.r", "xargs spawn sleep", "sleep nap",
			"cron nap", "reader nap", "w*6 open-both g f", "find fill p.w", "seq fill q.w", "xargs wait", "w*6 flock g", "find write p.w", "seq write q.w"},
		// As container engines make them.
		"contained": append([]string{"all pidns", "all netns"}, rpc("tcp4")...),
		"nested":    append([]string{"all pidns", "all netns", "all pidns"}, rpc("unix")...),
	}
}

// rpc is a pool of 4 workers with clients that come and go, and one of 4 with idle ones.
func rpc(family string) []string {
	return []string{"all listen l " + family, "all listen m " + family, "idle*4 connect x m", "pool*4 accept s m", "srv*4 worker l", "pool*4 answer s",
		"idle*4 nap", "c*3 call l", "late connect x m", "late nap", "next worker m"}
}
