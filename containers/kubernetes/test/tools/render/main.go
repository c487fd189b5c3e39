// Render prints, as YAML, the objects that kustomize makes from a folder, or Helm from a chart
// with values. It uses both as libraries, so that values are checked against the chart's
// schema.
//
//	render kustomize FOLDER
//	render helm CHART NAMESPACE [VALUES-FILE]
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	out, err := render(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
	fmt.Print(out)
}

func render(args []string) (string, error) {
	switch {
	case len(args) == 2 && args[0] == "kustomize":
		return kustomize(args[1])
	case (len(args) == 3 || len(args) == 4) && args[0] == "helm":
		return helm(args[1], args[2], strings.Join(args[3:], ""))
	}
	return "", errors.New("usage: render kustomize FOLDER, or render helm CHART NAMESPACE [VALUES-FILE]")
}

func kustomize(folder string) (string, error) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return "", err
	}
	text, err := made.AsYaml()
	return string(text), err
}

// helm renders a chart like helm template for a first installation. The release has the chart's
// name.
func helm(path, namespace, file string) (string, error) {
	chart, err := loader.Load(path)
	if err != nil {
		return "", err
	}
	values := common.Values{}
	if file != "" {
		if values, err = common.ReadValuesFile(file); err != nil {
			return "", err
		}
	}
	release := common.ReleaseOptions{Name: chart.Metadata.Name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			fmt.Fprintf(&out, "---\n# %s\n%s\n", name, strings.TrimSpace(files[name]))
		}
	}
	return out.String(), nil
}
