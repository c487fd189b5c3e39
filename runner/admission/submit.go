package admission

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"carma/configs/models"
	"carma/containers"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/hostenv"
	"carma/runner/limits"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/taskkind"
	"carma/runner/textcheck"
	"carma/runner/usermounts"
)

// Submit checks a request, estimates its memory and adds the task. When it
// returns without error, the task is durable.
func (a *Controller) Submit(ctx context.Context, who request.Caller, s api.Submit) (api.Submitted, error) {
	all, err := a.SubmitAll(ctx, who, api.Submission{Tasks: []api.Submit{s}})
	if err != nil {
		return api.Submitted{}, err
	}
	one := all.Tasks[0]
	one.Warnings = all.Warnings
	return one, nil
}

// candidate holds a task that is being submitted.
type candidate struct {
	rec      *record.Record
	est      estimator.Estimate
	expected model.Expected
}

// prepare checks a task, looks its image up and predicts its use of GPUs. It
// also returns warnings.
func (a *Controller) prepare(ctx context.Context, who request.Caller, s api.Submit) (*candidate, []string, error) {
	if err := cmp.Or(a.checkSubmit(who, s), textcheck.Submit(s), a.cfg.Settings().Bounds.Check(s), checkLeave(s), a.cfg.Channels.CheckSubmit(who, &s), a.checkContainerOptions(ctx, who, s), a.cfg.Authz.SetVisibility(&s)); err != nil {
		return nil, nil, err
	}
	warn := a.ipcLine(&s)
	var image containers.Image
	var err error
	if !s.Bare() {
		image, err = a.cfg.Images.Find(ctx, who.UID, s.Image, a.cfg.Images.Policy(s.Pull), pull.CredentialsFrom(ctx))
	}
	if unknown := unknownImage(ctx, err); unknown != "" {
		warn, err = append(warn, unknown), nil
	}
	if err != nil && !errors.Is(err, containers.ErrUnavailable) {
		return nil, nil, err
	}
	if up, _ := a.cfg.Engine.Status(); err != nil || !up {
		warn = append(warn, "the container engine does not answer: the task waits for it")
	}
	given := s.GPUs != 0 || s.NoGPU || len(s.GPUIDs) > 0
	sub, more := fromLabels(s, image.Labels)
	if who.Subject != nil {
		sub.Account = sub.Namespace
	} else if sub.Account, err = a.cfg.Authz.Account(who, s.Account); err != nil {
		return nil, nil, err
	}
	if sub.GPUs == api.AllGPUs {
		if err := a.cfg.Loop.Look(ctx, func(s *mapper.State) { sub.GPUs = max(1, s.MostGPUs()) }); err != nil {
			return nil, nil, err
		}
	}
	rec := &record.Record{Submit: sub, Name: sub.Name, Nonce: newNonce(), User: who.Name, UID: who.UID, GID: who.GID, ImageID: image.ID, ImageUser: image.User, ImageEnv: limits.Heeded(image.Env)}
	lines, err := a.readCommand(ctx, rec, &image, given)
	if err != nil {
		return nil, nil, err
	}
	sub = rec.Submit
	more = append(more, lines...)
	est, expected, err := a.Predict(ctx, rec, nil)
	if err != nil && len(s.Train) < len(sub.Train) { // a label of the image is wrong
		more = append(more, fmt.Sprintf("labels of the image that set the training: %v; ignored", err))
		rec.Submit.Train = s.Train
		est, expected, err = a.Predict(ctx, rec, nil)
	}
	if err == nil && len(s.Train) > 0 && est.Method == estimator.WholeGPUs && sub.Model() == "" && !sub.Probe {
		more = append(more, "settings of its training are given, but no model that is trained: nothing is estimated; name it with --est-model")
	}
	if err != nil && s.EstModel == "" && s.Estimator == "" && s.Params == 0 { // a label of the image is wrong
		more = append(more, fmt.Sprintf("image label %s: %v; ignored", "carma.est-model", err))
		rec.Submit.EstModel = ""
		est, expected, err = a.Predict(ctx, rec, nil)
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
		return nil, nil, request.Errorf(422, "%s: %v", option, err)
	}
	return &candidate{rec, est, expected}, append(warn, more...), nil
}

// Booking converts an estimate for the mapper.
func Booking(e estimator.Estimate) model.Estimate {
	return model.Estimate{Memory: e.Memory, Point: e.Point, WholeGPU: e.WholeGPU, Large: e.Large, Method: model.Method(e.Method), Share: e.Share, Plain: e.Plain}
}

// possible refuses a task that this machine can never run. An estimate from a few figures
// may be very wrong, so the task gets whole GPUs if such an estimate is too large.
func (a *Controller) possible(req model.Request, est estimator.Estimate) (estimator.Estimate, error) {
	err := a.cfg.Loop.State().Check(req, Booking(est))
	if no, ok := errors.AsType[*model.ImpossibleError](err); ok && no.Option == "mem" && est.Loose {
		est = estimator.Estimate{WholeGPU: true, Large: true, Method: estimator.WholeGPUs, Detail: est.Detail + "; more than a GPU here has, so it gets whole GPUs"}
		return a.possible(req, est)
	}
	return est, impossible(err, est.Method == estimator.Declared)
}

// impossible returns the refusal of a task that this machine can never run. declared is
// set if the submitter has declared the memory. Other errors, and nil, are returned
// unchanged.
func impossible(err error, declared bool) error {
	no, ok := errors.AsType[*model.ImpossibleError](err)
	switch {
	case !ok:
		return err
	case no.Option == "mem" && !declared:
		return request.Errorf(422, "--est-model: %s", words.Reason(no.Reason))
	}
	return request.Errorf(422, "--%s: %s", no.Option, words.Reason(no.Reason))
}

var priorities = map[string]model.Priority{"": model.Normal, "low": model.Low, "normal": model.Normal, "high": model.High}

// defaultName returns the last part of the name of the task's image or environment, or
// "task".
func defaultName(s *api.Submit) string {
	name := s.Stem()
	if !textcheck.IsName(name) {
		return "task"
	}
	return name
}

func (a *Controller) checkSubmit(who request.Caller, s api.Submit) error {
	if wrong := s.Check(); wrong != nil {
		return request.Errorf(422, "%v", wrong)
	}
	if strings.HasPrefix(s.Image, hostenv.ImagePrefix) {
		return request.Errorf(422, "image %s: it is carma's own, for tasks without an image; write --host in its place", s.Image)
	}
	if err := cmp.Or(textcheck.Name("--name", s.Name), textcheck.Name("part", s.Part)); err != nil {
		return err
	}
	for _, d := range s.After {
		if _, ok := conditions[d.Condition]; !ok || (d.Task == "") == (d.Part == "") {
			return request.Errorf(422, "--after %s%s:%s: name a task, and one of ok, any and started", d.Task, d.Part, d.Condition)
		}
	}
	if s.Probe && a.cfg.Settings().Probe == ProbeNever {
		return request.Errorf(422, "--probe: this daemon does not probe tasks (probe: never in its configuration); carma estimate --probe does")
	}
	if err := cmp.Or(checkNoGPU(s), checkGPUIDs(s)); err != nil {
		return err
	}
	if _, can := engine.As[containers.Terminals](a.cfg.Driver); !can && (s.TTY || s.Interactive) {
		return request.Errorf(422, "-i and -t: the driver %s cannot connect with programs in containers", a.cfg.Driver.Name())
	}
	if err := checkUser(who, s); err != nil {
		return err
	}
	if _, ok := priorities[s.Priority]; !ok {
		return request.Errorf(422, "--priority %q: choose low, normal or high", s.Priority)
	}
	if s.Priority == "high" {
		if err := a.cfg.Authz.AuthorizeHighPriority(who); err != nil {
			return err
		}
	}
	return usermounts.CheckPaths(s.Mounts)
}

// checkNoGPU refuses options that a task without a GPU cannot have.
func checkNoGPU(s api.Submit) error {
	switch {
	case !s.NoGPU:
	case s.GPUs > 0:
		return request.Errorf(422, "--gpus %d: the task was submitted with --gpus 0, which asks for none; submit it again to give it GPUs", s.GPUs)
	case s.Mem > 0:
		return request.Errorf(422, "--mem: it is the memory of a GPU, and --gpus 0 asks for none; --host-mem is the machine's memory")
	case s.Exclusive:
		return request.Errorf(422, "--exclusive: --gpus 0 asks for no GPU that others could share; leave it out")
	case s.Probe:
		return request.Errorf(422, "--probe: it finds the memory of a GPU, and --gpus 0 asks for none; leave it out")
	}
	return nil
}

// fromLabels fills the fields that the request leaves open from the image's labels. A
// wrong label causes only a warning, because it is an error of the image and not of the
// request.
func fromLabels(s api.Submit, labels map[string]string) (api.Submit, []string) {
	var warn []string
	if s.GPUs == 0 {
		s.GPUs = len(s.GPUIDs)
	}
	named := s.GPUIDs
	for _, f := range api.Fields() {
		text, there := labels[f.Label]
		if f.Label == "" || !there || f.Given(&s) || f.Name == "mem" && s.Probe {
			continue
		}
		if err := f.Set(&s, text); err != nil {
			warn = append(warn, fmt.Sprintf("image label %s: %v; ignored", f.Label, err))
		}
	}
	s.GPUIDs = named // an image cannot name this machine's GPUs
	if !s.NoGPU && s.GPUs != api.AllGPUs {
		s.GPUs = max(s.GPUs, 1)
	}
	return s, warn
}

// Predict estimates a task's memory, and its load and run time, from everything known of
// it. network is the result of a probe, or nil.
func (a *Controller) Predict(ctx context.Context, rec *record.Record, network *models.Config) (estimator.Estimate, model.Expected, error) {
	sub := rec.Submit
	if sub.NoGPU {
		return estimator.Estimate{Method: estimator.NoGPU, Detail: "it gets no GPU"}, model.Expected{}, nil
	}
	if e, ok := a.shares().Estimate(rec); ok {
		return e, a.cfg.Estimator.Expect(estimator.Query{Model: sub.EstModel, Batch: taskkind.BatchSize(rec), GPUs: sub.GPUs}), nil
	}
	q := estimator.Query{
		Declared: units.Bytes(sub.Mem), Model: sub.Model(), Described: sub.Network, Batch: taskkind.BatchSize(rec), GPUs: sub.GPUs, Estimator: sub.Estimator, Network: network,
		Few: estimator.Few{Params: sub.Params, Family: sub.Family, Input: sub.Input, Layers: sub.Layers},
	}
	if err := trained(&q, &sub); err != nil {
		return estimator.Estimate{}, model.Expected{}, err
	}
	err := a.cfg.Loop.Look(ctx, func(s *mapper.State) {
		q.Measured = s.Measured()
		if p := taskkind.Program(rec); p != "" && q.Declared == 0 {
			for _, run := range s.Runs(p) {
				q.Runs = append(q.Runs, estimator.Run(run))
			}
		}
	})
	if err != nil {
		return estimator.Estimate{}, model.Expected{}, err
	}
	e, err := a.cfg.Estimator.Estimate(q)
	if err != nil {
		return e, model.Expected{}, err
	}
	return e, a.cfg.Estimator.Expect(q), nil
}

// trained adds the settings of the training to a query.
func trained(q *estimator.Query, sub *api.Submit) (err error) {
	if q.Settings, err = sub.Training(); err != nil || sub.Read == nil {
		return err
	}
	q.Read = sub.Read.Said
	if n := sub.Read.Batch; n > 0 && sub.BatchSize == 0 && n <= models.MaxBatch {
		// GPUs that share one sample process one such batch together.
		q.Settings.Batch = n * max(1, sub.GPUs/max(1, q.Settings.SequenceParallel))
	}
	return nil
}

func isStopping(err error) bool { return errors.Is(err, request.ErrStopping) }

// newNonce makes the random text by which a task differs from the task with the
// same number in another copy of the journal.
func newNonce() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}
