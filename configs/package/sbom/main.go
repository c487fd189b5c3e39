// Command sbom prints what is linked into programs, as an SPDX 2.3 document: the Go
// modules and Go itself, read from the programs' own build information.
//
//	go run ./configs/package/sbom -version 1.2.3 -time 1700000000 bin/carma bin/carma-init
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

type document struct {
	Version   string         `json:"spdxVersion"`
	License   string         `json:"dataLicense"`
	ID        string         `json:"SPDXID"`
	Name      string         `json:"name"`
	Namespace string         `json:"documentNamespace"`
	Creation  creation       `json:"creationInfo"`
	Packages  []spdxPackage  `json:"packages"`
	Relations []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name     string     `json:"name"`
	ID       string     `json:"SPDXID"`
	Version  string     `json:"versionInfo"`
	Download string     `json:"downloadLocation"`
	Analyzed bool       `json:"filesAnalyzed"`
	License  string     `json:"licenseDeclared"`
	Sum      []checksum `json:"checksums,omitempty"`
	Refs     []external `json:"externalRefs,omitempty"`
	Comment  string     `json:"comment,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Of   string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION"

func main() {
	version := flag.String("version", "dev", "carma's version")
	at := flag.Int64("time", 0, "the document's time, seconds since 1970")
	flag.Parse()
	doc, err := describe(*version, time.Unix(*at, 0).UTC(), flag.Args())
	if err == nil {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(doc)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// describe describes programs, at least one.
func describe(version string, at time.Time, programs []string) (*document, error) {
	if len(programs) == 0 {
		return nil, fmt.Errorf("name the programs")
	}
	doc := &document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "carma-" + version,
		Creation: creation{at.Format(time.RFC3339), []string{"Tool: carma-sbom"}},
	}
	all, whole := map[string]spdxPackage{}, sha256.New()
	for _, path := range programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		whole.Write(sum[:])
		program := spdxPackage{
			Name: filepath.Base(path), ID: id("Program", filepath.Base(path)), Version: version, Download: unknown, License: "Apache-2.0",
			Sum: []checksum{{"SHA256", hex.EncodeToString(sum[:])}},
		}
		doc.Packages = append(doc.Packages, program)
		doc.Relations = append(doc.Relations, relationship{doc.ID, "DESCRIBES", program.ID})
		linked := []spdxPackage{module("stdlib", info.GoVersion, "")}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			linked = append(linked, module(m.Path, m.Version, m.Sum))
		}
		for _, p := range linked {
			all[p.ID] = p
			doc.Relations = append(doc.Relations, relationship{program.ID, "CONTAINS", p.ID})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		doc.Packages = append(doc.Packages, all[key])
	}
	doc.Namespace = "urn:carma:sbom:" + hex.EncodeToString(whole.Sum(nil)[:16])
	return doc, nil
}

// module describes a linked module. sum is Go's own checksum of its files, not of one
// file.
func module(path, version, sum string) spdxPackage {
	p := spdxPackage{
		Name: path, ID: id("Module", path+"-"+version), Version: version, Download: unknown, License: unknown,
		Refs: []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
	if sum != "" {
		p.Comment = "go.sum: " + sum
	}
	return p
}

// notID matches the characters that an SPDX identifier must not contain.
var notID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func id(kind, name string) string {
	return "SPDXRef-" + kind + "-" + notID.ReplaceAllString(name, "-")
}
