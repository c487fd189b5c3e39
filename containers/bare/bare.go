// Package bare makes containers without an image of their own. Such a container has the
// machine's system folders, read-only, on top of an image of empty folders. It runs
// programs of the machine, or of a conda or virtual environment that the submitter has
// made on it.
//
// The product and the hardware test suite share this package.
package bare

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
)

// Folders returns the machine's folders with programs, libraries and their settings. No
// other folder is needed to run a program, such as /root, /home, /var, /run or /tmp.
func Folders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"}
}

// Image is the name of the image. No registry can serve it: names that end in .invalid
// never resolve (RFC 6761), so nobody can replace the image by a pull. Its tag is the
// version of its content.
const Image = "carma.invalid/host:1"

// CanaryImage is the name of the image of carma's canary, and CanaryProgram the path of
// its program. Its tag is the version of its content.
const (
	CanaryImage   = "carma.invalid/canary:1"
	CanaryProgram = "/canary"
)

// empty lists the image's folders with their modes. /run and /home exist so that no
// folder of the machine has to be mounted there.
var empty = []struct {
	name string
	mode int64
}{
	{"dev/", 0o755}, {"home/", 0o755}, {"proc/", 0o755}, {"root/", 0o700}, {"run/", 0o755}, {"sys/", 0o755},
	{"tmp/", 0o1777}, {"var/", 0o755}, {"var/run/", 0o755}, {"var/tmp/", 0o1777},
}

// Archive returns the image as a tar file in the format of docker save. Every call
// returns the same bytes.
func Archive() ([]byte, error) { return archive(Image, nil) }

// CanaryArchive returns the canary's image in the same form. program is a static
// executable.
func CanaryArchive(program []byte) ([]byte, error) { return archive(CanaryImage, program) }

// archive makes an image of empty folders and the canary's program, if program is not
// nil.
func archive(image string, program []byte) ([]byte, error) {
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	for _, dir := range empty {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir.name, Mode: dir.mode}); err != nil {
			return nil, err
		}
	}
	if program != nil {
		if err := tw.WriteHeader(&tar.Header{Name: CanaryProgram[1:], Mode: 0o755, Size: int64(len(program))}); err != nil {
			return nil, err
		}
		if _, err := tw.Write(program); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer.Bytes())}},
	})
	if err != nil {
		return nil, err
	}
	name := sum(config) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	tw = tar.NewWriter(&all)
	for _, f := range []struct {
		name string
		data []byte
	}{{name, config}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		if err := tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := tw.Write(f.data); err != nil {
			return nil, err
		}
	}
	err = tw.Close()
	return all.Bytes(), err
}
