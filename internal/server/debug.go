package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
)

// debugStats is what /debug/requests says of the engine as a whole.
type debugStats struct {
	Stage       string  `json:"stage"`
	Seconds     float64 `json:"seconds"` // in that stage
	Running     int     `json:"running"`
	Waiting     int     `json:"waiting"`
	CacheUsage  float64 `json:"kv_cache_usage"`
	CacheTokens int     `json:"kv_cache_tokens"`

	Speculation map[string]*speculationUsage `json:"speculation,omitempty"` // of each method that has drafted
}

// debugRequest is a line of the table of requests.
type debugRequest struct {
	ID       string  `json:"id"`
	Key      string  `json:"key"`
	State    string  `json:"state"`
	Priority int     `json:"priority"`
	Prompt   int     `json:"prompt_tokens"`
	Cached   int     `json:"cached_tokens"`
	Computed int     `json:"computed_tokens"`
	Output   int     `json:"output_tokens"`
	Drafted  int     `json:"drafted_tokens"`
	Accepted int     `json:"accepted_tokens"`
	Age      float64 `json:"age_seconds"`
}

// debugTable is the answer of GET /debug/requests.
type debugTable struct {
	Engine   debugStats     `json:"engine"`
	Requests []debugRequest `json:"requests"` // null: the engine was busy for as long as debugWait
}

// debugWait is how long the table waits for the end of a step: a loop that hangs
// is what it is looked at for, and still has a stage.
const debugWait = time.Second

// debugRequests is GET /debug/requests: what waits and runs between two steps,
// as a table to read, or as JSON for those who accept it.
func (s *Server) debugRequests(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), debugWait)
	defer cancel()
	list, err := s.engine.Requests(ctx)
	busy := errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil
	if err != nil && !busy {
		return err
	}
	stats := s.engine.Stats()
	t := debugTable{Engine: debugStats{
		Stage: stats.Stage, Seconds: stats.For.Seconds(), Running: stats.Running, Waiting: stats.Waiting,
		CacheUsage: stats.CacheUsage, CacheTokens: stats.CacheTokens, Speculation: map[string]*speculationUsage{},
	}}
	for method, drafts := range stats.Speculation {
		if u := speculationOf(&drafts); u != nil {
			t.Engine.Speculation[method] = u
		}
	}
	if !busy {
		t.Requests = make([]debugRequest, 0, len(list))
	}
	for _, q := range list {
		t.Requests = append(t.Requests, debugRequest{q.ID, q.Key, q.State, q.Priority, q.Prompt, q.Cached, q.Computed, q.Output, q.Drafted, q.Accepted, q.Age.Seconds()})
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		return respond(w, t)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = w.Write(table(stats, t.Engine.Speculation, list, busy))
	return err
}

func table(stats engine.Stats, drafts map[string]*speculationUsage, list []engine.RequestState, busy bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s for %v; %d running, %d waiting; cache %.1f %% of %d tokens\n",
		stats.Stage, stats.For.Round(time.Millisecond), stats.Running, stats.Waiting, 100*stats.CacheUsage, stats.CacheTokens)
	for _, method := range slices.Sorted(maps.Keys(drafts)) {
		d := drafts[method]
		fmt.Fprintf(&b, "%s: %d tokens drafted, %d accepted, τ %.2f\n", method, d.Drafted, d.Accepted, d.Tau)
	}
	b.WriteByte('\n')
	if busy {
		fmt.Fprintf(&b, "no table: the engine has been busy for %v\n", debugWait)
		return b.Bytes()
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKEY\tSTATE\tPRIORITY\tPROMPT\tCACHED\tCOMPUTED\tOUTPUT\tDRAFTED\tACCEPTED\tAGE")
	for _, q := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\n",
			q.ID, q.Key, q.State, q.Priority, q.Prompt, q.Cached, q.Computed, q.Output, q.Drafted, q.Accepted, q.Age.Round(time.Millisecond))
	}
	_ = w.Flush() // a buffer takes all
	return b.Bytes()
}
