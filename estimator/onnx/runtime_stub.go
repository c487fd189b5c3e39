//go:build !cgo || !linux

package onnx

import "errors"

var errBuild = errors.New("this carma was built without cgo, which loads the library; build it with a C compiler in PATH (CGO_ENABLED=1 make build)")

// possible returns the reason why this build can never load a library.
func possible() error { return errBuild }

func start(string) (string, error) { return "", errBuild }

func newRunner([]byte, []string, []string) (runner, error) { return nil, errBuild }
