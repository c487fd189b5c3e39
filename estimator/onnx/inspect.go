package onnx

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// trusted refuses a library that other users could replace or change: a loaded
// library runs with the rights of this process.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return errors.New("anybody can write it")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return errors.New("it is another user's; set " + Variable + " to it if you trust it")
	}
	return nil
}

// inspect checks, without loading, that the file is a complete library for this
// architecture, and returns its version, or "" if unknown. The linker does not check the
// file: loading a truncated one kills the process.
func inspect(path string) (version string, err error) {
	// debug/elf returns errors for damaged files, but some versions have panicked.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not a library: %v", r)
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a file")
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("not a library: %w", err)
	}
	defer f.Close()
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if f.Type != elf.ET_DYN || machine != elf.EM_NONE && f.Machine != machine {
		return "", fmt.Errorf("not a library for %s", runtime.GOARCH)
	}
	for _, p := range f.Progs {
		if p.Off+p.Filesz > uint64(info.Size()) || p.Off+p.Filesz < p.Off {
			return "", errors.New("cut short")
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return "", fmt.Errorf("not a library: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "OrtGetApiBase" && s.Section != elf.SHN_UNDEF {
			version = strings.TrimPrefix(s.Version, "VERS_")
			if old(version) {
				return "", fmt.Errorf("version %s is older than %s", version, Oldest)
			}
			return version, nil
		}
	}
	return "", errors.New("not ONNX Runtime: it has no OrtGetApiBase")
}

// old reports whether a version is before [Oldest]. It returns false for text that is not
// a version.
func old(version string) bool {
	major, minor, ok := number(version)
	oldMajor, oldMinor, _ := number(Oldest)
	return ok && (major < oldMajor || major == oldMajor && minor < oldMinor)
}

func number(version string) (major, minor int, ok bool) {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	major, errA := strconv.Atoi(a)
	minor, errB := strconv.Atoi(b)
	return major, minor, errA == nil && errB == nil
}
