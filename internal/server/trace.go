package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// NewTracer sends spans to a collector that speaks OTLP over HTTP, such as
// http://localhost:4318/v1/traces. Requests never wait for it: spans that it
// does not take in time are lost, and log has a line. Stop sends what is left,
// until ctx ends.
func NewTracer(ctx context.Context, endpoint, version string, log *slog.Logger) (t trace.Tracer, stop func(ctx context.Context) error, err error) {
	// The library tells the log of what it cannot read, and sends to localhost.
	if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, fmt.Errorf("traces to %q: expected an address such as http://localhost:4318/v1/traces", endpoint)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("traces to %s: %w", endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans are lost", "error", err) }))
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "foretoken"), attribute.String("service.version", version))))
	return p.Tracer("github.com/foretoken/foretoken"), p.Shutdown, nil
}

// trace begins the span of a request, below that of the client if it has sent
// one (W3C trace context).
func (s *Server) trace(ctx context.Context, r *http.Request, in *request) (context.Context, trace.Span) {
	if s.Tracer == nil || in.quiet {
		return ctx, nil
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	return s.Tracer.Start(ctx, in.method+" "+in.route, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(in.began),
		trace.WithAttributes(attribute.String("http.request.method", in.method), attribute.String("http.route", in.route),
			attribute.String("gen_ai.request.id", in.id), attribute.String("gen_ai.response.model", s.modelName())))
}

// endSpan ends the span of a request. Names of attributes are vLLM's.
func (s *Server) endSpan(in *request, status int, t *totals, err error) {
	if in.span == nil {
		return
	}
	in.span.SetAttributes(attribute.Int("http.response.status_code", status))
	if len(in.generations) > 0 {
		in.span.SetAttributes(
			attribute.Int("gen_ai.usage.prompt_tokens", t.prompt), attribute.Int("gen_ai.usage.completion_tokens", t.output),
			attribute.Int("gen_ai.usage.cached_tokens", t.cached), attribute.String("gen_ai.response.finish_reason", t.finish),
			attribute.Float64("gen_ai.latency.time_in_queue", t.queue.Seconds()),
			attribute.Float64("gen_ai.latency.time_to_first_token", t.first.Seconds()))
	}
	if err != nil && status >= http.StatusInternalServerError {
		in.span.SetStatus(codes.Error, err.Error())
	}
	in.span.End()
}
