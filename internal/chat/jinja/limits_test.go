package jinja

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/foretoken/foretoken/internal/chat/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Templates that would run for ever, or fill all memory, or overflow the stack.
func TestRenderingIsBounded(t *testing.T) {
	// nested puts a value into itself very often: X stands for it.
	nested := func(times, item string) string {
		of := func(v string) string { return strings.ReplaceAll(item, "X", v) }
		return "{% set ns = namespace(v=" + of("0") + ", w=" + of("0") + ") %}{% for i in range(" + times + ") %}" +
			"{% set ns.v = " + of("ns.v") + " %}{% set ns.w = " + of("ns.w") + " %}{% endfor %}"
	}
	bounded := func(by string, limits Limits, sources ...string) {
		limits.Time = time.Minute // the machine may be busy
		for _, src := range sources {
			_, kind, err := render(t, src, "{}", limits)
			if kind != "LimitError" || !strings.Contains(err.Error(), by) {
				t.Errorf("%.100s\n got %v, want a limit of %s", src, err, by)
			}
		}
	}
	bounded("steps", Limits{Steps: 1 << 18, Memory: 1 << 30},
		strings.Repeat("{% for a in range(100000) %}", 3)+strings.Repeat("{% endfor %}", 3),
		"{% for a in range(100000) if range(100000)|list|length < 0 %}{% endfor %}",
		"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(200) }}",
		"{% for i in range(100000) %}{% set x = range(100000)|sort(reverse=true) %}{% endfor %}",
		"{% set a = 'é' * 1000000 %}{% for i in range(100000) %}{{ a[i] }}{% endfor %}",
		"{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{% set x = a.strip('bcdefgha') %}{% endfor %}",
		"{% set a = 'a' * 1000000 %}{% for i in range(100000) %}{% set x = a.count('aab') %}{% endfor %}",
		"{% for i in range(100000) %}{% set x = ('ab ' * 100000)|title %}{% endfor %}",
		"{% for i in range(100000) %}{% set x = ('9' * 4000)|int ** 8 %}{% endfor %}",
		"{% for i in range(100000) %}{{ loop.changed(*range(100000)) }}{% endfor %}",
		nested("100", "[X, X]")+"{{ ns.v == ns.w }}",
	)
	bounded("bytes", Limits{Memory: 8 << 20, Text: 1 << 20},
		"{{ 'x' * 1000000000 }}",
		"{{ ([0] * 1000000000)|length }}",
		"{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
		"{% set a = 'x' * 100000 %}{{ a|replace('', a) }}",
		"{% set a = 'x' * 100000 %}{{ a.join(a) }}",
		"{{ '%1000000000d' % 1 }}", "{{ '%*d' % (1000000000, 1) }}", "{{ '{:>1000000000}'.format(1) }}", "{{ '{:01000000000,}'.format(1) }}",
		"{{ 'a'.zfill(1000000000) }}", "{{ 'a'.ljust(1000000000) }}", "{{ 'a'|center(1000000000) }}", "{{ '\\t'.expandtabs(1000000000) }}",
		"{{ 'a\\nb'|indent(1000000000) }}", "{{ [[1]]|tojson(indent=1000000000) }}", "{{ [1]|batch(1000000000, 0)|list }}", "{{ [1]|slice(1000000000)|list }}",
		"{{ strftime_now('%c' * 10000000) }}",
		"{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
		strings.Repeat("{% set x %}", 50)+"{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}"+strings.Repeat("{% endset %}", 50),
		nested("100", "[X, X]")+"{{ ns.v|tojson|length }}",
	)
	bounded("integer too large", Limits{},
		"{% set ns = namespace(x=3) %}{% for i in range(100) %}{% set ns.x = ns.x * ns.x %}{% endfor %}", "{{ 3 ** 1000000000 }}",
	)
	bounded("deeper", Limits{},
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ r() }}",
		"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		nested("50000", "[X]")+"{{ ns.v }}", nested("50000", "[X]")+"{{ ns.v == ns.w }}", nested("50000", "(X,)")+"{{ ns.v < ns.w }}",
		"{% set ns = namespace(g=[1]) %}{% for i in range(90000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|list }}",
		"{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}",
	)
	// Too deep for JSON and for keys, which have errors of their own.
	for src, want := range map[string]string{
		nested("50000", "[X]") + "{{ ns.v|tojson }}": "ValueError",
		nested("50000", "(X,)") + "{{ {ns.v: 1} }}":  "TypeError",
		nested("90", "(X, X)") + "{{ {ns.v: 1} }}":   "TypeError",
		"{{ '%.1000000000f' % 1 }}":                  "ValueError",
		"{{ ('9' * 5000)|int * 1 }}":                 "",
	} {
		if _, kind, err := render(t, src, "{}", Limits{Time: time.Minute}); kind != want {
			t.Errorf("%.100s\n got %v, want %s", src, err, want)
		}
	}
}

// Each limit by itself, with the others out of reach.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		inside string
		beyond string
		want   string
	}{
		{Limits{Text: 100}, "{{ 'x' * 100 }}", "{{ ('x' * 101)|length }}", "template: a text of more than 100 bytes"},
		{Limits{Text: 100}, "{% for i in range(100) %}x{% endfor %}", "{% for i in range(101) %}x{% endfor %}", "template: a text of more than 100 bytes"},
		{Limits{Text: 100}, "{{ [1] * 33 }}", "{{ ([1] * 34)|string|length }}", "template: a text of more than 100 bytes"},
		{Limits{Text: 100}, "{{ ['x' * 96]|tojson }}", "{{ (['x' * 90] * 2)|tojson|length }}", "template: a text of more than 100 bytes"},
		{Limits{Memory: 1000}, "{{ range(40)|list|length }}", "{{ range(50)|list|length }}", "template: more than 1000 bytes of values"},
		{Limits{Memory: 1000}, "{% for i in range(9) %}{% set x = 'x' * 100 %}{% endfor %}", "{% for i in range(11) %}{% set x = 'x' * 100 %}{% endfor %}", "template: more than 1000 bytes of values"},
		{Limits{Steps: 1000}, "{% for i in range(50) %}{{ i }}{% endfor %}", "{% for i in range(500) %}{{ i }}{% endfor %}", "template: more than 1000 steps"},
		{Limits{Calls: 10}, "{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(9) }}", "{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(10) }}", "template: calls nest deeper than 10"},
	} {
		if _, _, err := render(t, c.inside, "{}", c.limits); err != nil {
			t.Errorf("%s: %v", c.inside, err)
		}
		if _, _, err := render(t, c.beyond, "{}", c.limits); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.beyond, err, c.want)
		}
	}
}

func TestRenderingEndsWithItsContext(t *testing.T) {
	tmpl, err := Compile(strings.Repeat("{% for a in range(100000) %}", 5) + strings.Repeat("{% endfor %}", 5))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := tmpl.Render(ctx, new(value.Object), noon, Limits{Time: time.Hour})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
	_, err = tmpl.Render(t.Context(), new(value.Object), noon, Limits{Time: time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of time: got %v", err)
	}
}

// What a real conversation needs must be far from the limits.
func TestLongConversation(t *testing.T) {
	messages := value.NewList()
	for i := range 2000 {
		role := []string{"user", "assistant"}[i%2]
		messages.Items = append(messages.Items, value.NewObject("role", role, "content", strings.Repeat("lorem ipsum ", 400)))
	}
	tmpl, err := Compile(`{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content|trim + '<|im_end|>\n' }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tmpl.Render(t.Context(), value.NewObject("messages", messages), noon, Limits{Steps: 1 << 22, Memory: 32 << 20})
	if err != nil || len(text) < 9<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestConcurrentRendering(t *testing.T) {
	tmpl, err := Compile(`{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}{{ d|tojson }}`)
	if err != nil {
		t.Fatal(err)
	}
	vars := value.NewObject("l", value.NewList(1, 2, 3), "d", value.NewObject("k", 1.5))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got, err := tmpl.Render(t.Context(), vars, noon, Limits{}); got != `6{"k": 1.5}` || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestErrorsNameTheLine(t *testing.T) {
	for src, want := range map[string]string{
		"a\n\n{{ x.y }}": "template line 3: UndefinedError: 'x' is undefined",
		"{% if true %}\n{% for i in [1] %}\n{{ 'a' + 1 }}{% endfor %}{% endif %}": `template line 3: TypeError: can only concatenate str (not "int") to str`,
		"{{\n\n d.nope.x }}":                     "template line 3: UndefinedError: 'dict object' has no attribute 'nope'",
		"{{ [].startswith('a') }}":               "template line 1: UndefinedError: 'list object' has no attribute 'startswith'",
		"\n{% endif %}":                          "template line 2: unknown tag 'endif'",
		"{{ raise_exception('roles, please') }}": "roles, please",
	} {
		_, _, err := render(t, src, `{"d": {}}`, Limits{})
		if err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", src, err, want)
		}
	}
}
