package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"carma/containers"
)

// firstSubject is the lowest number of a user of a cluster. A kernel's users have
// smaller ones.
const firstSubject = 1 << 32

// subjectUID is the number by which carma knows a user of a cluster, in records, limits
// and labels. It follows from the name, so that it is the same on every machine.
func subjectUID(name string) int {
	sum := sha256.Sum256([]byte("kubernetes:" + name))
	return firstSubject + int(binary.BigEndian.Uint64(sum[:])>>2)
}

// ofCluster reports whether a number is that of a user of a cluster: none that a
// process or a file can have.
func ofCluster(uid int) bool { return uid >= firstSubject }

// subjectCaller is a user of a cluster as the caller of a request. home is the namespace
// that the request names as theirs; a service account's is its own.
func subjectCaller(s containers.Subject, home string) Caller {
	if home == "" {
		if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok {
			home, _, _ = strings.Cut(rest, ":")
		}
	}
	return Caller{UID: subjectUID(s.Name), GID: firstSubject, Name: s.Name, Groups: s.Groups, Subject: &s, Home: "", namespace: home}
}

// clusterAdmin reports whether a user of a cluster is one of carma's admins: by name, or
// by group, which is written with @.
func (r *Runner) clusterAdmin(s *containers.Subject) bool {
	return slices.ContainsFunc(r.live().ClusterAdmins, func(name string) bool {
		group, is := strings.CutPrefix(name, "@")
		return is && slices.Contains(s.Groups, group) || !is && name == s.Name
	})
}

// owns reports whether a task is a caller's own.
func owns(who Caller, rec *Record) bool {
	return who.UID == rec.UID && (!ofCluster(who.UID) || who.Name == rec.User)
}
