package containers

import "testing"

// TestStartExitCode checks that messages of runc 1.0 to 1.3 and containerd give the same exit
// codes as docker.
func TestStartExitCode(t *testing.T) {
	for text, want := range map[string]int{
		`OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "nonsense": executable file not found in $PATH: unknown`:                                                                    127,
		`failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/no/such": stat /no/such: no such file or directory: unknown`: 127,
		`OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/no/such": stat /no/such: no such file or directory: unknown`:                                     127,
		`OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "/etc/passwd": permission denied: unknown`:                                                                                  126,
		`OCI runtime create failed: runc create failed: unable to start container process: exec: "/tmp": is a directory: unknown`:                                                                                                126,
		`exec /train.sh: exec format error`:                                             126,
		`invalid mount config for type "bind": bind source path does not exist: /data`:  125,
		`error mounting "/x" to rootfs at "/y": mount /x:/y: no such file or directory`: 125,
	} {
		f := &StartFault{Scope: ScopeTask, Text: text}
		if got := f.ExitCode(); got != want {
			t.Errorf("%d, want %d: %s", got, want, text)
		}
		f.Scope = ScopeEngine
		if got := f.ExitCode(); got != 125 {
			t.Errorf("the engine's fault: %d: %s", got, text)
		}
	}
}
