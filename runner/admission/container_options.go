package admission

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"carma/containers"
	"carma/containers/option"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/ports"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/usermounts"

	"golang.org/x/sys/unix"
)

// Fittings lists the devices and limits that a task may request beside its share of the
// machine.
type Fittings struct {
	// Devices are patterns of paths of devices.
	Devices []string
	// Ulimits are the highest limits, each NAME=MOST, or NAME for no limit. A limit that
	// is not named can only be set to 0.
	Ulimits []string
}

// Check refuses limits whose names the kernel does not know.
func (f Fittings) Check() error {
	for _, text := range f.Ulimits {
		if _, err := mostOf(text); err != nil {
			return fmt.Errorf("allowed-ulimits: %w", err)
		}
	}
	return nil
}

// checkContainerOptions refuses options that a task of who cannot have here. The options
// are checked again at each launch.
func (a *Controller) checkContainerOptions(ctx context.Context, who request.Caller, s api.Submit) error {
	o, err := a.ContainerOptions(who, s)
	if err == nil {
		err = ports.Check(s.Ports, usermounts.MayMountAll(who.UID))
	}
	if err != nil {
		return err
	}
	if err := containers.CheckOptions(a.cfg.Driver, &o); err != nil {
		return request.Errorf(422, "%v", err)
	}
	return ctx.Err()
}

// ContainerOptions returns the options that a task's container gets: the submitted ones, of
// which some are completed.
func (a *Controller) ContainerOptions(who request.Caller, s api.Submit) (o containers.ContainerOptions, err error) {
	o = s.ContainerOptions
	live := a.cfg.Settings()
	for _, text := range o.Ulimits {
		if err := allowedUlimit(live.Fittings.Ulimits, text); err != nil {
			return o, err
		}
	}
	o.Devices = nil
	for _, text := range s.Devices {
		list, err := allowedDevices(live.Fittings.Devices, text)
		if err != nil {
			return o, err
		}
		o.Devices = append(o.Devices, list...)
	}
	if o.Groups, err = groupsOf(who, s.Groups); err != nil {
		return o, err
	}
	if o.IPC == containers.IPCHost && !a.hostIPC() {
		o.IPC = ""
	}
	o.Tmpfs, err = a.tmpfs(s)
	return o, err
}

// hostIPC reports whether tasks may have the machine's IPC namespace.
func (a *Controller) hostIPC() bool { return a.cfg.HostIPC }

// ipcLine returns the line saying that a task does not get the machine's IPC namespace.
// Tasks request this namespace, as the command lines of vLLM and NGC do, to have a large
// /dev/shm.
func (a *Controller) ipcLine(s *api.Submit) []string {
	if s.IPC != containers.IPCHost || a.hostIPC() {
		return nil
	}
	return []string{"--ipc host: not honoured: a task has its own, and a /dev/shm of half of its host memory; --shm-size 8G makes it larger. Only a daemon with mps-ipc: host gives tasks the machine's"}
}

// tmpfs returns a task's tmpfs mounts. A mount without a size may take half of the task's
// memory, as the kernel's default is half of the machine's memory.
func (a *Controller) tmpfs(s api.Submit) (list []string, err error) {
	most := cmp.Or(s.HostMem, int64(a.cfg.Settings().Bounds.Default.HostMem))
	sum := s.ShmSize
	for _, text := range s.Tmpfs {
		t, _ := option.ParseTmpfs(text)
		for _, dir := range a.cfg.Folders() {
			if isUnder(t.Target, dir) || isUnder(dir, t.Target) {
				return nil, request.Errorf(422, "--tmpfs %s: carma mounts %s in every task; choose another folder, for example /scratch", t.Target, dir)
			}
		}
		sum += t.Size
		if most > 0 && sum > most {
			return nil, request.Errorf(422, "--tmpfs %s: with /dev/shm and the other folders in memory that is %s; all of it counts as the task's memory, which is %s (--host-mem)", text, units.Bytes(sum), units.Bytes(most))
		}
		t.Size = cmp.Or(t.Size, most/2)
		list = append(list, t.String())
	}
	return list, nil
}

// isUnder reports whether a clean path is a folder or below it.
func isUnder(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// mostOf reads the highest limit that a setting allows.
func mostOf(text string) (option.Ulimit, error) {
	if !strings.Contains(text, "=") {
		text += "=-1"
	}
	return option.ParseUlimit(text)
}

// allowedUlimit refuses a limit that the settings do not allow.
func allowedUlimit(allowed []string, text string) error {
	u, err := option.ParseUlimit(text)
	if err != nil {
		return request.Errorf(422, "--ulimit %v", err)
	}
	if u.Hard == 0 { // a limit of 0 only restricts the task
		return nil
	}
	var names []string
	for _, a := range allowed {
		most, _ := mostOf(a)
		names = append(names, most.Name)
		if most.Name != u.Name {
			continue
		}
		if most.Hard != -1 && (u.Hard == -1 || u.Hard > most.Hard) {
			return request.Errorf(403, "--ulimit %s: at most %s=%d is allowed here (allowed-ulimits)", text, u.Name, most.Hard)
		}
		return nil
	}
	return request.Errorf(403, "--ulimit %s: the administrator allows %s (allowed-ulimits)", text, orNone(names))
}

func orNone(list []string) string {
	return cmp.Or(strings.Join(list, ", "), "none")
}

// groupsOf returns the numbers of groups that are given by name or number on this
// machine. Only root, and the user that the daemon runs as, get groups that they are not
// in. The engine is given numbers, because it would look up names in the image.
func groupsOf(who request.Caller, names []string) (list []string, err error) {
	for _, name := range names {
		n, wrong := strconv.Atoi(name)
		if wrong != nil {
			g, err := user.LookupGroup(name)
			if err != nil {
				return nil, request.Errorf(422, "--group-add %s: this machine has no such group; id -Gn lists yours", name)
			}
			n, _ = strconv.Atoi(g.Gid)
		}
		if n < 0 || n > 1<<31-2 {
			return nil, request.Errorf(422, "--group-add %s: that is not the number of a group", name)
		}
		if !usermounts.MayMountAll(who.UID) && n != who.GID && !slices.Contains(who.GIDs, n) {
			return nil, request.Errorf(403, "--group-add %s: you are not in that group on this machine; id -Gn lists yours", name)
		}
		if number := strconv.Itoa(n); !slices.Contains(list, number) {
			list = append(list, number)
		}
	}
	return list, nil
}

// allowedDevices returns the devices that a text names, if the settings allow them: one
// device, or the allowed devices of a folder.
func allowedDevices(allowed []string, text string) (list []string, err error) {
	d, err := option.ParseDevice(text)
	if err != nil {
		return nil, request.Errorf(422, "--device %v", err)
	}
	refusal := request.Errorf(403, "--device %s: the administrator allows %s (allowed-devices); GPUs come by --gpus", text, orNone(allowed))
	folder := slices.ContainsFunc(allowed, func(a string) bool { ok, _ := path.Match(path.Dir(a), d.Source); return ok })
	if !folder && !allows(allowed, d.Source) {
		return nil, refusal
	}
	info, err := os.Stat(d.Source)
	switch {
	case err != nil:
		return nil, request.Errorf(422, "--device %s: this machine has no such device; carma doctor and ls %s show what there is", text, path.Dir(d.Source))
	case info.IsDir():
		entries, _ := os.ReadDir(d.Source)
		for _, e := range entries {
			if name := path.Join(d.Source, e.Name()); mayHave(allowed, name) {
				if strings.Contains(e.Name(), ":") { // its text could not be read back
					return nil, request.Errorf(422, "--device %s: the name of %s has a ':'; name the devices alone, this one by another path", text, name)
				}
				list = append(list, option.Device{Source: name, Target: path.Join(d.Target, e.Name()), Permissions: d.Permissions}.String())
			}
		}
	case mayHave(allowed, d.Source):
		list = []string{d.String()}
	}
	if len(list) == 0 {
		return nil, refusal
	}
	return list, nil
}

func allows(allowed []string, name string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool { ok, _ := path.Match(a, name); return ok })
}

// nvidiaMajor is the major number of the device nodes of NVIDIA's driver.
const nvidiaMajor = 195

// mayHave reports whether the settings allow a path as a device, and also its link target.
// GPUs are never allowed: the mapper assigns GPUs.
func mayHave(allowed []string, name string) bool {
	real, err := filepath.EvalSymlinks(name)
	if err != nil || !allows(allowed, name) || !allows(allowed, real) {
		return false
	}
	for _, p := range []string{"/dev/nvidia*", "/dev/nvidia*/*", "/dev/dri/*"} {
		if ok, _ := path.Match(p, real); ok {
			return false
		}
	}
	var f unix.Stat_t
	if unix.Stat(real, &f) != nil || unix.Major(f.Rdev) == nvidiaMajor {
		return false
	}
	return f.Mode&unix.S_IFMT == unix.S_IFCHR || f.Mode&unix.S_IFMT == unix.S_IFBLK
}

// checkUser refuses the user of a container that a caller may not choose.
func checkUser(who request.Caller, s api.Submit) error {
	if s.User == "" || who.Is(s.User) || (rights.Policy{}).MayServer(rights.ChooseUser, rights.Caller{UID: who.UID}) {
		return nil
	}
	return request.Errorf(403, "--user %s: a task runs as its submitter, and only root may choose; leave it out", s.User)
}
