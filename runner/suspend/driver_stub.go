//go:build !cgo

package suspend

import "errors"

// driver cannot be loaded without cgo.
type driver struct{ cuda int }

func openDriver(string) (*driver, error) {
	return nil, errors.New("this carma was built without cgo, which loads the NVIDIA driver's library: build it with a C compiler in PATH (CGO_ENABLED=1 make build)")
}

func (*driver) call(request) (State, Code, error) { panic("no driver is loaded") }
