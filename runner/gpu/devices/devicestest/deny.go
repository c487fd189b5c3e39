// Package devicestest revokes devices from control groups in tests, like an engine or
// systemd: with the devices controller of version 1 or a BPF program.
package devicestest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DenyFirst denies the device MAJOR:MINOR to the group of version 1 in a folder.
func DenyFirst(t *testing.T, dir, device string) { t.Helper(); change(t, dir, "devices.deny", device) }

// AllowFirst allows the device MAJOR:MINOR to the group of version 1 in a folder.
func AllowFirst(t *testing.T, dir, device string) {
	t.Helper()
	change(t, dir, "devices.allow", device)
}

func change(t *testing.T, dir, file, device string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte("c "+device+" rwm"), 0); err != nil {
		t.Fatal(err)
	}
}

// DenySecond attaches to the group of version 2 in a folder a program that denies all
// devices. It skips the test if the kernel refuses the program.
func DenySecond(t *testing.T, dir string) (allow func()) {
	t.Helper()
	code := [2]uint64{0xb7, 0x95} // r0 = 0; exit
	license := []byte("GPL\x00")
	load := struct { // union bpf_attr of BPF_PROG_LOAD
		kind, count    uint32
		code, license  uint64
		level, size    uint32
		log            uint64
		version, flags uint32
		_              [24]byte
		_, expected    uint32
	}{kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: 2, code: uint64(uintptr(unsafe.Pointer(&code))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	program, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&load)), unsafe.Sizeof(load))
	runtime.KeepAlive(license)
	if errno != 0 {
		t.Skipf("the kernel takes no device program: %v", errno)
	}
	group, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	attach := struct{ target, program, kind, flags uint32 }{uint32(group), uint32(program), unix.BPF_CGROUP_DEVICE, unix.BPF_F_ALLOW_MULTI}
	if _, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_ATTACH, uintptr(unsafe.Pointer(&attach)), unsafe.Sizeof(attach)); errno != 0 {
		t.Fatalf("attach the program to %s: %v", dir, errno)
	}
	return func() {
		attach.flags = 0
		if _, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_DETACH, uintptr(unsafe.Pointer(&attach)), unsafe.Sizeof(attach)); errno != 0 {
			t.Errorf("detach the program from %s: %v", dir, errno)
		}
		_, _ = unix.Close(int(program)), unix.Close(group)
	}
}
