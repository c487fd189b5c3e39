package option

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
	"carma/internal/suggest"
	"carma/internal/units"
)

// Tmpfs is a folder of a container in memory. Set-uid programs and devices have no effect
// in it.
type Tmpfs struct {
	Target   string // absolute
	Size     int64  // bytes; if 0, the daemon chooses
	Mode     string // octal; empty means 1777
	ReadOnly bool
	Exec     bool // programs in it can run
	UID, GID int  // owner; root by default
}

// String returns the text of the option, as [ParseTmpfs] reads it.
func (t Tmpfs) String() string {
	var o []string
	add := func(given bool, text string) {
		if given {
			o = append(o, text)
		}
	}
	add(t.Size > 0, fmt.Sprintf("size=%dB", t.Size))
	add(t.Mode != "", "mode="+t.Mode)
	add(t.ReadOnly, "ro")
	add(t.Exec, "exec")
	add(t.UID > 0, fmt.Sprintf("uid=%d", t.UID))
	add(t.GID > 0, fmt.Sprintf("gid=%d", t.GID))
	if len(o) == 0 {
		return t.Target
	}
	return t.Target + ":" + strings.Join(o, ",")
}

// Options returns the mount's options.
func (t Tmpfs) Options() []string {
	access, exec, mode := "rw", "noexec", t.Mode
	if t.ReadOnly {
		access = "ro"
	}
	if t.Exec {
		exec = "exec"
	}
	if mode == "" {
		mode = "1777"
	}
	return []string{access, "nosuid", "nodev", exec, "mode=" + mode, fmt.Sprintf("size=%d", t.Size), fmt.Sprintf("uid=%d", t.UID), fmt.Sprintf("gid=%d", t.GID)}
}

// ownFolders lists folders of a container that the engine or carma fills.
var ownFolders = []string{"/proc", "/sys", "/dev", "/.carma"}

var octal = lazyregexp.New(`^[01]?[0-7]{3}$`)

// ParseTmpfs parses FOLDER[:OPTION,...] as docker run does. Set-uid programs and devices
// have no effect in such a folder.
func ParseTmpfs(text string) (t Tmpfs, err error) {
	target, options, _ := strings.Cut(text, ":")
	t.Target = path.Clean(target)
	if !path.IsAbs(target) || t.Target == "/" || strings.ContainsAny(target, "\x00,\n") {
		return t, fmt.Errorf("%q: %q is not an absolute folder below /; write for example /scratch:size=2G", text, target)
	}
	for _, dir := range ownFolders {
		if t.Target == "/dev/shm" {
			return t, fmt.Errorf("%q: /dev/shm is in memory already; --shm-size sets its size", text)
		}
		if t.Target == dir || strings.HasPrefix(t.Target, dir+"/") {
			return t, fmt.Errorf("%q: %s belongs to the engine; write for example /scratch:size=2G", text, dir)
		}
	}
	for option := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "", "rw", "noexec", "nosuid", "nodev", "noatime", "relatime":
		case "ro":
			t.ReadOnly = true
		case "exec":
			t.Exec = true
		case "size":
			t.Size, err = tmpfsSize(value)
		case "mode":
			if t.Mode = value; !octal().MatchString(value) {
				err = fmt.Errorf("mode %q is not octal; write for example 1777", value)
			}
		case "uid", "gid":
			var n int64
			n, err = units.ParseCount(value, 0)
			if n > 1<<31-2 {
				err = fmt.Errorf("%d is not the number of a user or group", n)
			}
			*map[string]*int{"uid": &t.UID, "gid": &t.GID}[key] = int(n)
		case "suid", "dev":
			err = fmt.Errorf("%s: set-uid programs and devices have no effect in a task's folders; leave it out", key)
		default:
			err = fmt.Errorf("unknown option %q; nearest: %s", key, suggest.Names(key, []string{"size", "mode", "ro", "exec", "uid", "gid"}, 1)[0])
		}
		if err != nil {
			return t, fmt.Errorf("%q: %w", text, err)
		}
	}
	return t, nil
}

// tmpfsSize parses a size as mount does: a number without a unit is bytes.
func tmpfsSize(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return n, nil
	}
	if strings.HasSuffix(text, "%") {
		return 0, fmt.Errorf("size %s: of what is not said; write for example 2G", text)
	}
	b, err := units.ParseMemory(text)
	return int64(b), err
}
