package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"carma/containers"
	"carma/runner/rights"
)

// subjectUID returns the number that stands for a user of a cluster in records, limits
// and labels. It is computed from the name, so it is the same on every machine.
func subjectUID(name string) int {
	sum := sha256.Sum256([]byte("kubernetes:" + name))
	return rights.FirstClusterUser + int(binary.BigEndian.Uint64(sum[:])>>2)
}

// subjectCaller returns the caller for a user of a cluster. home is the namespace that
// the request names as the user's. For a service account it is the account's own
// namespace.
func subjectCaller(s containers.Subject, home string) Caller {
	if home == "" {
		if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok {
			home, _, _ = strings.Cut(rest, ":")
		}
	}
	return Caller{UID: subjectUID(s.Name), GID: rights.FirstClusterUser, Name: s.Name, Groups: s.Groups, Subject: &s, Home: "", namespace: home}
}

// clusterAdmin reports whether a user of a cluster is one of carma's admins: by name, or
// by group, which is written with @.
func (r *Runner) clusterAdmin(s *containers.Subject) bool {
	return slices.ContainsFunc(r.live().ClusterAdmins, func(name string) bool {
		group, is := strings.CutPrefix(name, "@")
		return is && slices.Contains(s.Groups, group) || !is && name == s.Name
	})
}
