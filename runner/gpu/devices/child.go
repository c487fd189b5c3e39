package devices

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ChildCommand is the first argument of the child process.
const ChildCommand = "device-access"

// Container identifies a container by one of its processes.
type Container struct {
	PID int `json:"pid"`
	// Names are the container's names in control groups.
	Names []string `json:"names"`
}

// RunChild is the main function of the child process. It reads a [Container] per line,
// writes a [Result] for each, and returns the exit code.
func RunChild(in io.Reader, out io.Writer) int {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	mounted := hierarchies()
	for lines.Scan() {
		var c Container
		var r Result
		err := json.Unmarshal(lines.Bytes(), &c)
		if err == nil {
			r.Nodes, err = c.check(mounted)
		}
		if err != nil {
			r = Result{Why: err.Error()}
		}
		if answers.Encode(r) != nil || errors.Is(err, errStays) {
			return 1
		}
	}
	return 0
}

// errStays means that the child could not leave a container's control group, and must
// end.
var errStays = errors.New("leave the container's control group")

// file is an open device node, as a handle that opens no device (O_PATH).
type file struct {
	Node
	fd int
}

// check returns the state of the container's nodes. All files are opened, and all memory
// is allocated, before the child enters the container's groups: inside, it makes no
// system calls except faccessat2 and write.
func (c Container) check(mounted []hierarchy) ([]Node, error) {
	proc, err := unix.Open("/proc/"+strconv.Itoa(c.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", c.PID, err)
	}
	defer unix.Close(proc) // refers to this process even if its PID is reused
	text, err := read(proc, "cgroup")
	if err != nil {
		return nil, err
	}
	if !innermost(text, c.Names) {
		return nil, fmt.Errorf("process %d is not in the container any more", c.PID)
	}
	files, err := nodes(proc)
	defer func() {
		for _, f := range files {
			_ = unix.Close(f.fd)
		}
	}()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	if err := inside(groups(mounted, text), groups(mounted, own), func() { access(files) }); err != nil {
		return nil, err
	}
	drivers := charDrivers()
	out := make([]Node, len(files))
	for i, f := range files {
		if f.State == Openable && drivers != nil && !drivers[unix.Major(f.Device)] {
			f.State = Gone
		}
		out[i] = f.Node
	}
	return out, nil
}

// read reads a file of /proc/PID.
func read(proc int, name string) ([]byte, error) {
	fd, err := unix.Openat(proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 128<<10))
}

// mostNodes is the largest number of nodes of one container.
const mostNodes = 128

// nodes opens the device nodes that CUDA programs need in a process's /dev. It resolves
// paths below the process's root without following links, because the container's root
// may have replaced the nodes.
func nodes(proc int) (files []file, err error) {
	root, err := unix.Openat(proc, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, "dev", &how)
	if err != nil {
		return nil, fmt.Errorf("/dev of the container: %w", err)
	}
	dev := os.NewFile(uintptr(fd), "dev")
	defer dev.Close()
	entries, err := dev.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	how.Flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how.Resolve |= unix.RESOLVE_BENEATH
	how.Resolve &^= unix.RESOLVE_IN_ROOT
	for _, e := range entries {
		if !needed(e.Name()) || len(files) == mostNodes {
			continue
		}
		fd, err := unix.Openat2(int(dev.Fd()), e.Name(), &how)
		if err != nil {
			continue // it was removed meanwhile, or is a link
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || !local(fd) {
			_ = unix.Close(fd)
			continue
		}
		files = append(files, file{Node{Path: devPath(e.Name()), State: Unknown, Device: st.Rdev}, fd})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// local reports whether a node is on a file system of the kernel itself. On another one
// (FUSE, NFS), an access check could block indefinitely.
func local(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && slices.Contains([]int64{unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}, int64(fs.Type))
}

// inside calls f while this process is in the groups theirs, then moves it back to its
// own groups.
func inside(theirs, own []group, f func()) error {
	if len(theirs) == 0 || len(theirs) != len(own) {
		return errors.New("the container's control groups are not seen from here")
	}
	var in, back []int
	defer func() {
		for _, fd := range slices.Concat(in, back) {
			_ = unix.Close(fd)
		}
	}()
	for _, g := range theirs {
		if err := g.enterable(); err != nil {
			return err
		}
		fd, err := g.procs()
		if err != nil {
			return err
		}
		in = append(in, fd)
	}
	for _, g := range own {
		fd, err := g.procs()
		if err != nil {
			return err
		}
		back = append(back, fd)
	}
	self := []byte("0")
	var err error
	for _, fd := range in {
		if _, err = unix.Write(fd, self); err != nil {
			break
		}
	}
	if err == nil {
		f()
	}
	for _, fd := range back {
		if _, leave := unix.Write(fd, self); leave != nil {
			return fmt.Errorf("%w: %w", errStays, leave)
		}
	}
	return err
}

// access asks the kernel about each file.
func access(files []file) {
	for i := range files {
		switch err := unix.Faccessat2(files[i].fd, "", unix.R_OK|unix.W_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS); err {
		case nil:
			files[i].State = Openable
		case unix.EPERM:
			files[i].State = Denied
		case unix.ENOENT, unix.ENXIO, unix.ENODEV:
			files[i].State = Gone
		}
	}
}

// charDrivers returns the major numbers for which the kernel has a driver of character
// devices, or nil if it does not list them.
func charDrivers() map[uint32]bool {
	text, err := os.ReadFile("/proc/devices")
	if err != nil {
		return nil
	}
	majors := map[uint32]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "Block") {
			break
		}
		if fields := strings.Fields(line); len(fields) == 2 {
			if n, err := strconv.ParseUint(fields[0], 10, 32); err == nil {
				majors[uint32(n)] = true
			}
		}
	}
	return majors
}
