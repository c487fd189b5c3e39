package cgroup

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Pods returns the UIDs of the Kubernetes pods in which a process runs, innermost first,
// because a pod may run another cluster's node. It is empty for a process outside pods.
// root and pid are as with [Containers].
//
// A kubelet names a pod's control group podUID, or, by systemd, X-podUID.slice with
// underscores instead of hyphens in the UID.
func Pods(root string, pid int) ([]string, error) {
	f, err := os.Open(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	var best []string
	for line := range strings.Lines(string(b)) {
		if parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3); len(parts) == 3 {
			if uids := podsIn(parts[2]); len(uids) > len(best) {
				best = uids
			}
		}
	}
	return best, nil
}

// podsIn returns the pods in a control group's path, innermost first.
func podsIn(path string) (uids []string) {
	for _, part := range slices.Backward(strings.Split(path, "/")) {
		name, systemd := strings.CutSuffix(part, ".slice")
		if systemd {
			if i := strings.LastIndex(name, "-pod"); i >= 0 {
				name = name[i+1:]
			}
		}
		uid, ok := strings.CutPrefix(name, "pod")
		if uid = strings.ReplaceAll(uid, "_", "-"); ok && isUID(uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// isUID reports whether a text is a pod's UID: a UUID for pods of an apiserver, or a hash
// of 32 digits for pods that a kubelet reads from files.
func isUID(s string) bool {
	if len(s) != 36 && len(s) != 32 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && c != '-' {
			return false
		}
	}
	return true
}
