package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"

	"carma/mapper/sim/pairs"
)

// The data to which the shipped coefficients are fitted; convert.go names its source.
var (
	//go:embed pairs.csv
	pairsFile []byte
	//go:embed profiles.csv
	profilesFile []byte
)

// read reads the pairs of two files; an empty path is the shipped file.
func read(pairsPath, profilesPath string) ([]pairs.Pair, error) {
	file, err := open(profilesPath, profilesFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	profiles, err := pairs.ReadProfiles(named(profilesPath, "profiles.csv"), file)
	if err != nil {
		return nil, err
	}
	if file, err = open(pairsPath, pairsFile); err != nil {
		return nil, err
	}
	defer file.Close()
	m, err := pairs.Read(named(pairsPath, "pairs.csv"), file, profiles)
	if err != nil {
		return nil, err
	}
	for _, s := range m.Skipped { // coefficients are for all of a file or for none
		return nil, fmt.Errorf("%s:%d: %s", named(pairsPath, "pairs.csv"), s.Line, s.Reason)
	}
	return m.Pairs, nil
}

func open(path string, shipped []byte) (io.ReadCloser, error) {
	if path == "" {
		return io.NopCloser(bytes.NewReader(shipped)), nil
	}
	return os.Open(path)
}

func named(path, shipped string) string {
	if path == "" {
		return shipped
	}
	return path
}
