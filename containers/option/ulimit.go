package option

import (
	"fmt"
	"strconv"
	"strings"

	"carma/internal/suggest"
)

// Ulimit is a limit of a container's processes; -1 means none. The unit is the kernel's:
// bytes, files, processes, seconds.
type Ulimit struct {
	Name       string // as in ulimitNames
	Soft, Hard int64
}

// ulimitNames lists the names in docker run.
var ulimitNames = []string{"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"}

// String returns the text of the option, as [ParseUlimit] reads it.
func (u Ulimit) String() string { return fmt.Sprintf("%s=%d:%d", u.Name, u.Soft, u.Hard) }

// ParseUlimit parses NAME=SOFT[:HARD]. Without HARD both are the same. -1 and unlimited
// mean no limit.
func ParseUlimit(text string) (u Ulimit, err error) {
	name, values, _ := strings.Cut(text, "=")
	name = strings.TrimPrefix(strings.ToLower(name), "rlimit_")
	if err := suggest.OneOf(name, ulimitNames); err != nil {
		return u, err
	}
	soft, hard, two := strings.Cut(values, ":")
	if !two {
		hard = soft
	}
	u.Name = name
	for _, v := range []struct {
		text string
		to   *int64
	}{{soft, &u.Soft}, {hard, &u.Hard}} {
		if v.text == "unlimited" {
			v.text = "-1"
		}
		if *v.to, err = strconv.ParseInt(v.text, 10, 64); err != nil || *v.to < -1 {
			return u, fmt.Errorf("%q: %q is not a number from 0 on, nor -1 for no limit; write for example %s=-1 or nofile=1024:65536", text, v.text, name)
		}
	}
	if u.Hard != -1 && (u.Soft == -1 || u.Soft > u.Hard) {
		return u, fmt.Errorf("%q: the soft limit is above the hard one; write %s=%d", text, name, u.Hard)
	}
	return u, nil
}
