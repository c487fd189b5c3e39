package api

import "context"

// Used is the use of one GPU on one day by the removed tasks of one user, account, group
// and image. Tasks are counted on the day of their end, in a row without a GPU.
type Used struct {
	Day     string `json:"day" doc:"2006-01-02, in the daemon's time zone"`
	User    string `json:"user"`
	Account string `json:"account,omitempty"`
	Group   string `json:"group,omitempty"`
	Image   string `json:"image,omitempty"`
	GPU     *int   `json:"gpu,omitempty" doc:"index"`

	Tasks     int     `json:"tasks,omitempty"`
	Succeeded int     `json:"succeeded,omitempty"`
	Failed    int     `json:"failed,omitempty"`
	Starts    int     `json:"starts,omitempty" doc:"tasks that had GPUs"`
	Waited    float64 `json:"waited,omitempty" doc:"seconds until their first start, of all"`

	OOMs       int     `json:"gpu_ooms,omitempty"`
	GPUSeconds float64 `json:"gpu_seconds,omitempty"`
	// AwaySeconds is not included in GPUSeconds.
	AwaySeconds float64 `json:"suspended_seconds,omitempty" doc:"seconds suspended, once for each GPU that the task had"`
	Booked      float64 `json:"booked,omitempty" doc:"GiB-seconds"`
	Wasted      float64 `json:"wasted,omitempty" doc:"GiB-seconds above their peaks"`
	Unmeasured  float64 `json:"unmeasured,omitempty" doc:"of gpu_seconds, those of attempts whose use of memory is not known; they are not in booked and wasted"`
	EnergyJ     float64 `json:"energy_j,omitempty"`
}

// Same reports whether two sums cover the same tasks and GPU.
func (u Used) Same(o Used) bool {
	return u.Day == o.Day && u.User == o.User && u.Account == o.Account && u.Group == o.Group && u.Image == o.Image &&
		(u.GPU == nil) == (o.GPU == nil) && (u.GPU == nil || *u.GPU == *o.GPU)
}

// Used lists the usage of removed tasks by day, for days from since up to, not including,
// until, as 2006-01-02. An empty date means no bound.
func (c *Client) Used(ctx context.Context, since, until string) ([]Used, error) {
	return GetUsed.send(ctx, c, UsedOptions{since, until})
}
