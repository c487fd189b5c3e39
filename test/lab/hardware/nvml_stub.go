//go:build !cgo

package main

import (
	"context"
	"errors"

	"carma/runner/gpu"
)

var errNoCgo = errors.New("built without cgo, which loads the NVIDIA driver's library; build it with a C compiler in PATH")

func openCard(context.Context, string) (gpu.Source, error) { return nil, errNoCgo }

func driverFacts(string) []fact { return nil }

func listClients(string) (onCard, error) { return nil, errNoCgo }

func minorOf(string) (int, error) { return 0, errNoCgo }
