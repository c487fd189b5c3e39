package booking

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator"
	"carma/estimator/networks/described"
	"carma/estimator/networks/named"
	"carma/internal/suggest"
	"carma/mapper/model"
)

// detailed reports whether a query gives more of a training than a name and a batch size.
// Such a query is answered from the network, because the measurements are of trainings
// with other settings.
func detailed(q estimator.Query) bool {
	return len(q.Described) > 0 || models.Told(&q.Settings) != ""
}

// Expect answers q. It returns the zero value for a described network, whose name is only
// the name of a file.
func (p *Predictor) Expect(q estimator.Query) model.Expected {
	if len(q.Described) > 0 {
		return model.Expected{}
	}
	return p.Catalogue.Expect(q)
}

// networkOf returns the network of a query, or builds the network that the query names or
// describes. If the description is a config.json, kind is its model_type.
func networkOf(q estimator.Query) (c *models.Config, kind string, err error) {
	if q.Network != nil {
		return q.Network, "", nil
	}
	o := q.Settings
	if o.GPUs = 0; o.Batch == 0 {
		o.Batch = q.Batch
	}
	if q.GPUs > 1 {
		o.GPUs = q.GPUs
	}
	if q.GPUs > 1 && o.Parallel == "" {
		o.Parallel = models.DDP
	}
	if len(q.Described) > 0 {
		c, kind, err = described.Read(q.Model, q.Described, o)
		return c, kind, err
	}
	if !named.Known(q.Model) {
		return nil, "", withNetworks(&estimator.UnknownModelError{Name: q.Model, Nearest: suggest.Near(q.Model, named.All())})
	}
	c, err = named.Build(q.Model, o)
	return c, "", err
}

// called describes the subject of an estimate: the model, and the training settings if the
// query has any.
func called(q estimator.Query, c *models.Config, kind string) string {
	if q.Network != nil {
		if c.Origin == "probe" {
			return c.Name + ", from the probe,"
		}
		return c.Name
	}
	if !detailed(q) {
		return c.Name
	}
	text := c.Name + " ("
	if kind != "" {
		text += kind + ", "
	}
	text += parameters(c) + ")"
	if how := models.Told(&q.Settings); how != "" {
		text += ", " + how
	}
	if q.GPUs > 1 {
		text += fmt.Sprintf(", on %d GPUs", q.GPUs)
	}
	return text
}

// parameters describes the number of a network's parameters.
func parameters(c *models.Config) string {
	all, trained := c.Params(), c.TrainableParams()
	if trained == all {
		return large(all) + " parameters"
	}
	return fmt.Sprintf("%s parameters, %s of them trained", large(all), large(trained))
}

// large formats a number with three digits and a unit.
func large(n int64) string {
	switch {
	case n >= 999_500_000:
		return fmt.Sprintf("%.3g G", float64(n)/1e9)
	case n >= 999_500:
		return fmt.Sprintf("%.3g M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.3g k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
