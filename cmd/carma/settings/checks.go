package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"carma/configs/servers"
	"carma/internal/lazyregexp"
	"carma/mapper/rules"
)

func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not an absolute path", path)
	}
	return nil
}

// maxSocketPath is the kernel's limit for the path of a unix socket in bytes,
// without the final zero.
const maxSocketPath = 107

func validSocket(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("%q is longer than the %d bytes of a unix socket's path", path, maxSocketPath)
	}
	return absolute(path)
}

func validSource(source string) error {
	if server, ok := strings.CutPrefix(source, "sim:"); ok && server != "" {
		_, err := servers.Find(server)
		return err
	}
	if source == "auto" || source == "nvml" || source == "cluster" {
		return nil
	}
	if list, ok := strings.CutPrefix(source, "nvml:"); ok {
		return validGPUs(list)
	}
	return fmt.Errorf("unknown source %q; it is auto, nvml, nvml:0,1, cluster or sim:SERVER, for example sim:dgx-station-a100", source)
}

// validGPUs checks a list of GPUs, each an index or UUID of nvidia-smi.
func validGPUs(list string) error {
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			continue
		}
		if upper := strings.ToUpper(name); strings.HasPrefix(upper, "GPU-") || strings.HasPrefix(upper, "MIG-") {
			continue
		}
		return fmt.Errorf("nvml: %q is neither an index nor a UUID of a GPU; nvidia-smi -L lists them; write for example nvml:0,1", name)
	}
	return nil
}

// validPage accepts the URL of a page, or an empty text.
func validPage(page string) error {
	if page == "" {
		return nil
	}
	if u, err := url.Parse(page); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not the address of a page; write for example http://localhost:9400/metrics", page)
	}
	return nil
}

// validAddress accepts off, or a host and port to listen at.
func validAddress(address string) error {
	if address == "off" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	n, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || wrong != nil || n == 0:
		return fmt.Errorf("%q is not an address; write for example 127.0.0.1:9810, or off", address)
	case host == "":
		return fmt.Errorf("%q is open to every network of the machine; write 127.0.0.1:%s, or 0.0.0.0:%s if that is meant", address, port, port)
	}
	return nil
}

// validDevices checks a pattern of devices.
func validDevices(p string) error {
	if _, err := path.Match(p, ""); err != nil || !strings.HasPrefix(p, "/dev/") || path.Clean(p) != p {
		return fmt.Errorf("%q is not a pattern of paths below /dev; write for example /dev/infiniband/*", p)
	}
	return nil
}

var ulimitMost = lazyregexp.New(`^[a-z]+(=[0-9]{1,18})?$`)

// validUlimit checks the form of a limit; the daemon checks its name.
func validUlimit(u string) error {
	if !ulimitMost().MatchString(u) {
		return fmt.Errorf("%q is not name=most or name; write for example memlock, or nofile=1048576", u)
	}
	return nil
}

// notBelow0 refuses negative numbers.
var notBelow0 = rules.AtLeast(0, "%d is negative; 0 is the least")

// named returns a check that refuses an empty text with an error.
func named(refusal string) func(string) error {
	return func(name string) error {
		if name == "" {
			return errors.New(refusal)
		}
		return nil
	}
}

// each returns a check that refuses a list by its first wrong element.
func each(check func(string) error) func([]string) error {
	return func(list []string) error {
		for _, one := range list {
			if err := check(one); err != nil {
				return err
			}
		}
		return nil
	}
}
