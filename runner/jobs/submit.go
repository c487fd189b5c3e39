package jobs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"carma/containers"
	"carma/internal/suggest"
	"carma/runner/api"
	"carma/runner/request"
)

// jobAnnotation is the prefix of the annotations of a Job that carma reads.
const jobAnnotation = "carma.dev/"

// jobNames maps annotations to flags of carma run where their names differ.
var jobNames = map[string]string{"memory": "mem", "model": "est-model"}

// jobSettings are the flags of carma run that an annotation may give, in addition to the
// flags that describe a training.
var jobSettings = []string{"gpus", "batch-size", "priority", "exclusive", "estimator", "params", "family", "input", "layers", "command-check"}

// submitOfJob returns a Job's request. The error names the wrong annotation.
func submitOfJob(j *containers.Job) (api.Submit, error) {
	s := api.Submit{Image: j.Image, Entrypoint: j.Entrypoint, Command: j.Command, Env: j.Env, Mem: j.Memory, Namespace: j.Namespace}
	for _, name := range slices.Sorted(maps.Keys(j.Settings)) {
		f, ok := jobField(name)
		if !ok {
			return s, request.Errorf(422, "annotation %s%s: carma knows no such setting of a Job; did you mean %s%s?", jobAnnotation, name, jobAnnotation, strings.Join(suggest.Names(name, jobSettingNames(), 1), ""))
		}
		if name == "memory" {
			return s, request.Errorf(422, "annotation %smemory: %q is not an amount of memory; write for example 20Gi", jobAnnotation, j.Settings[name])
		}
		if err := f.Set(&s, j.Settings[name]); err != nil {
			return s, request.Errorf(422, "annotation %s%s: %v", jobAnnotation, name, err)
		}
	}
	return s, nil
}

// inAnnotations names the annotation of a Job where an error names a flag of carma run.
func inAnnotations(err error) error {
	no, ok := err.(*request.Error)
	if !ok {
		return err
	}
	flag, text, ok := strings.Cut(no.Text, ": ")
	name, is := strings.CutPrefix(flag, "--")
	if !ok || !is {
		return err
	}
	for annotation, field := range jobNames {
		if name == field {
			name = annotation
		}
	}
	return request.Errorf(no.Status, "annotation %s%s: %s", jobAnnotation, name, text)
}

// jobField returns the field of a request that an annotation sets.
func jobField(name string) (api.Field, bool) {
	if !slices.Contains(jobSettingNames(), name) {
		return api.Field{}, false
	}
	return api.FieldNamed(cmp.Or(jobNames[name], name))
}

// jobSettingNames returns the names of all annotations that set a field of the request.
func jobSettingNames() []string {
	names := slices.Concat(slices.Sorted(maps.Keys(jobNames)), jobSettings)
	for _, f := range api.Fields() {
		if f.Trains() {
			names = append(names, f.Name)
		}
	}
	return names
}

// ownerOfJob returns the owner of a Job's task, who is charged for it.
func ownerOfJob(j *containers.Job) request.Caller {
	return request.SubjectCaller(containers.Subject{Name: cmp.Or(j.Owner, "unknown")}, j.Namespace)
}
