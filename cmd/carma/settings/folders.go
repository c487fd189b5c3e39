package settings

import (
	"fmt"
	"path/filepath"
	"strings"
)

// walled lists the machine's folders that no task may see, with the reasons.
var walled = []struct{ dir, why string }{
	{"/proc", "it shows the processes of others"},
	{"/sys", "the machine's devices are set in it"},
	{"/dev", "it has the machine's disks; a task gets its GPUs by itself"},
	{"/run", "it has the sockets of the machine's services, the container engine's too"},
	{"/var/run", "it has the sockets of the machine's services, the container engine's too"},
	{"/root", "it is root's home"},
}

// hostFolders refuses folders that tasks without an image must not see.
func hostFolders(list []string) error {
	for _, dir := range list {
		clean := filepath.Clean(dir)
		switch {
		case !filepath.IsAbs(dir):
			return fmt.Errorf("%q is not absolute; write for example /opt", dir)
		case clean == "/":
			return fmt.Errorf("%q is the whole machine; name the folders with programs, for example /usr", dir)
		}
		for _, w := range walled {
			if clean == w.dir || strings.HasPrefix(clean, w.dir+"/") {
				return fmt.Errorf("%s cannot be shown to tasks: %s", dir, w.why)
			}
		}
	}
	return nil
}
