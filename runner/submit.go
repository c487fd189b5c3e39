package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"carma/mapper/units"

	"carma/configs/models"
	"carma/containers"
	"carma/estimator"
	"carma/mapper"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/limits"
)

// RequestError is a request that was refused, with the HTTP status that says
// whose fault it is: 4xx the caller's, 5xx not.
type RequestError struct {
	Status int
	Text   string
}

func (e *RequestError) Error() string { return e.Text }

func refusef(status int, format string, args ...any) *RequestError {
	return &RequestError{Status: status, Text: clipped(fmt.Sprintf(format, args...))}
}

// maxText is how long a sentence of an answer may be: some quote what was sent.
const maxText = 2000

// clipped is a text without its middle if it is longer than a sentence.
func clipped(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText/2], "") + " [...] " + strings.ToValidUTF8(text[len(text)-maxText/2:], "")
}

var taskName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// Submit checks a request, estimates its memory and adds the task. When it
// returns without error, the task is durable.
func (r *Runner) Submit(ctx context.Context, who Caller, s api.Submit) (api.Submitted, error) {
	all, err := r.SubmitAll(ctx, who, api.Submission{Tasks: []api.Submit{s}})
	if err != nil {
		return api.Submitted{}, err
	}
	one := all.Tasks[0]
	one.Warnings = all.Warnings
	return one, nil
}

// candidate is a task that is to be submitted.
type candidate struct {
	rec      *Record
	est      estimator.Estimate
	expected mapper.Expected
}

// prepare finds out what can be known of a task before it is submitted.
func (r *Runner) prepare(ctx context.Context, who Caller, s api.Submit) (*candidate, []string, error) {
	if err := firstError(r.checkSubmit(who, s), checkTexts(s), r.live().Bounds.check(s), r.checkVisibility(&s)); err != nil {
		return nil, nil, err
	}
	image, err := r.image(ctx, s)
	if err != nil && !errors.Is(err, containers.ErrUnavailable) {
		return nil, nil, err
	}
	var warn []string
	if up, _ := r.engine.status(); err != nil || !up {
		warn = append(warn, "the container engine does not answer: the task waits for it")
	}
	sub, more := fromLabels(s, image.Labels)
	rec := &Record{Submit: sub, Name: sub.Name, Nonce: newNonce(), User: who.Name, UID: who.UID, GID: who.GID, ImageID: image.ID, ImageUser: image.User, ImageEnv: limits.Heeded(image.Env)}
	est, expected, err := r.predict(ctx, rec, nil)
	if err != nil && s.EstModel == "" && s.Estimator == "" && s.Params == 0 { // an image's label
		more = append(more, fmt.Sprintf("image label %s: %v; ignored", "carma.est-model", err))
		rec.Submit.EstModel = ""
		est, expected, err = r.predict(ctx, rec, nil)
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if isStopping(err) {
		return nil, nil, err
	}
	if err != nil {
		option := "--est-model"
		if sub.EstModel == "" {
			option = "--params"
		}
		return nil, nil, refusef(422, "%s: %v", option, err)
	}
	return &candidate{rec, est, expected}, append(warn, more...), nil
}

// booking is an estimate as the mapper takes it.
func booking(e estimator.Estimate) mapper.Estimate {
	return mapper.Estimate{Memory: e.Memory, Point: e.Point, WholeGPU: e.WholeGPU, Method: mapper.Method(e.Method)}
}

// possible refuses what this machine can never give. An estimate from a few
// figures may be far off: a task for which it is too large gets whole GPUs.
func (r *Runner) possible(req mapper.Request, est estimator.Estimate) (estimator.Estimate, error) {
	err := r.state.Check(req, booking(est))
	var impossible *mapper.ImpossibleError
	if !errors.As(err, &impossible) {
		return est, err
	}
	if impossible.Option == "mem" && est.Loose {
		est = estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: est.Detail + "; more than a GPU here has, so it gets whole GPUs"}
		return r.possible(req, est)
	}
	option := "--" + impossible.Option
	if impossible.Option == "mem" && est.Method != estimator.Declared {
		option = "--est-model"
	}
	return est, refusef(422, "%s: %s", option, words.Reason(impossible.Reason))
}

var priorities = map[string]mapper.Priority{"": mapper.Normal, "low": mapper.Low, "normal": mapper.Normal, "high": mapper.High}

// defaultName is the last part of an image's name.
func defaultName(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	if i := strings.IndexAny(name, ":@"); i > 0 {
		name = name[:i]
	}
	if !taskName.MatchString(name) {
		return "task"
	}
	return name
}

func (r *Runner) checkSubmit(who Caller, s api.Submit) error {
	if wrong := s.Check(); wrong != nil {
		return refusef(422, "%v", wrong)
	}
	if err := firstError(checkName("--name", s.Name), checkName("part", s.Part)); err != nil {
		return err
	}
	for _, d := range s.After {
		if _, ok := conditions[d.Condition]; !ok || (d.Task == "") == (d.Part == "") {
			return refusef(422, "--after %s%s:%s: name a task, and one of ok, any and started", d.Task, d.Part, d.Condition)
		}
	}
	if s.Probe && r.live().Probing.When == ProbeNever {
		return refusef(422, "--probe: this daemon does not probe tasks (probe: never in its configuration); carma estimate --probe does")
	}
	if s.User != "" && who.UID != 0 {
		return refusef(403, "user %s: a task runs as who submits it; root may choose", s.User)
	}
	if err := r.checkPriority(who, s); err != nil {
		return err
	}
	return checkMountPaths(s.Mounts)
}

// checkName refuses what cannot be a name of a task or a group; an empty one is
// chosen later.
func checkName(option, name string) error {
	switch _, numeric := strconv.Atoi(name); {
	case name == "":
		return nil
	case numeric == nil:
		return refusef(422, "%s %s: a name must not be a number, those are for task ids", option, name)
	case !taskName.MatchString(name):
		return refusef(422, "%s %q: letters, digits, '_', '.' and '-' only, beginning with a letter or digit, at most 128", option, name)
	}
	return nil
}

// fromLabels fills what the request leaves open from the image's labels. A
// label that makes no sense is a warning: it is the image's fault.
func fromLabels(s api.Submit, labels map[string]string) (api.Submit, []string) {
	var warn []string
	for _, f := range api.Fields() {
		text, there := labels[f.Label]
		if f.Label == "" || !there || f.Given(&s) || f.Name == "mem" && s.Probe {
			continue
		}
		if err := f.Set(&s, text); err != nil {
			warn = append(warn, fmt.Sprintf("image label %s: %v; ignored", f.Label, err))
		}
	}
	s.GPUs = max(s.GPUs, 1)
	return s, warn
}

// predict estimates a task's memory from all that is known of it, network
// included where a probe has found it, and what it will do to its GPUs.
func (r *Runner) predict(ctx context.Context, rec *Record, network *models.Config) (estimator.Estimate, mapper.Expected, error) {
	sub := rec.Submit
	q := estimator.Query{
		Declared: units.Bytes(sub.Mem), Model: sub.EstModel, Batch: batchSize(rec), GPUs: sub.GPUs, Estimator: sub.Estimator, Network: network,
		Few: estimator.Few{Params: sub.Params, Family: sub.Family, Input: sub.Input, Layers: sub.Layers},
	}
	if p := program(rec); p != "" && q.Declared == 0 {
		err := r.look(ctx, func(s *mapper.State) {
			for _, run := range s.Runs(p) {
				q.Runs = append(q.Runs, estimator.Run(run))
			}
		})
		if err != nil {
			return estimator.Estimate{}, mapper.Expected{}, err
		}
	}
	e, err := r.Estimator.Estimate(q)
	if err != nil {
		return e, mapper.Expected{}, err
	}
	return e, r.Estimator.Expect(q), nil
}

// firstError is the first of some errors that is one.
func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func isStopping(err error) bool { return errors.Is(err, errStopping) }
