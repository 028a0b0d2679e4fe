package parse

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var all = Known{
	Filter: func(name string) bool { return name != "nofilter" },
	Test:   func(name string) bool { return name != "notest" },
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for src, want := range map[string]string{
		"a\n{{ 1":                        "template line 2: unexpected end of template inside a tag",
		"{{ 'abc }}":                     "template line 1: unexpected char '\\'': the string has no end",
		"\n\n{{ a ? b }}":                "template line 3: unexpected char '?'",
		"{{ (1] }}":                      "template line 1: unexpected ']', expected ')'",
		"{{ 1) }}":                       "template line 1: unexpected ')'",
		"{# a":                           "template line 1: missing end of comment tag",
		"{% raw %} a":                    "template line 1: missing end of raw directive",
		"{{ '\\xg1' }}":                  "template line 1: malformed \\x escape",
		"{{ }}":                          "template line 1: expected an expression, got '}}'",
		"{{ 1 2 }}":                      "template line 1: expected '}}', got '2'",
		"{{ x. }}":                       "template line 1: expected name or number, got '}}'",
		"{{ f(a=1, 2) }}":                "template line 1: invalid syntax for function call expression",
		"{{ a is b is c }}":              "template line 1: tests cannot be chained with is",
		"{% if a %}\n{% for b in c %}\n": "template line 2: unexpected end of template: for needs endfor",
		"{% if a %}{% endfor %}":         "template line 1: unknown tag 'endfor'",
		"{% if a %}x":                    "template line 1: unexpected end of template: if needs endif",
		"{% for 1 in x %}{% endfor %}":   "template line 1: cannot assign to this expression",
		"{% set a.b.c = 1 %}":            "template line 1: expected '%}', got '.'",
		"{% for loop in x %}":            "template line 1: cannot assign to the special variable loop",
		"{% include 'x' %}":              "template line 1: include: a chat template is one file, there are no others to refer to",
		"{% extends 'x' %}":              "template line 1: extends: a chat template is one file, there are no others to refer to",
		"{% 1 %}":                        "template line 1: expected a tag name, got '1'",
		"{% macro m(a=1, b) %}":          "template line 1: non-default argument follows default argument",
		"{% call m %}{% endcall %}":      "template line 1: expected a call",
		"\n{{ a|nofilter }}":             "template line 2: no filter named 'nofilter'",
		"{{ a is notest }}":              "template line 1: no test named 'notest'",
	} {
		_, err := Template(src, all)
		var syntax *Error
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", src, err, want)
		}
	}
}

// A break must have a loop to leave that is not on the other side of a function.
func TestLoopControls(t *testing.T) {
	const tail = "{% endfor %}"
	for src, ok := range map[string]bool{
		"{% break %}": false,
		"{% for a in b %}{% if a %}{% break %}{% endif %}" + tail:                       true,
		"{% for a in b %}{% set x %}{% continue %}{% endset %}" + tail:                  true,
		"{% for a in b %}{% with x = 1 %}{% continue %}{% endwith %}" + tail:            true,
		"{% for a in b %}{% else %}{% break %}" + tail:                                  false,
		"{% for a in b %}{% macro m() %}{% break %}{% endmacro %}" + tail:               false,
		"{% for a in b %}{% call m() %}{% break %}{% endcall %}" + tail:                 false,
		"{% for a in b %}{% generation %}{% break %}{% endgeneration %}" + tail:         false,
		"{% for a in b recursive %}{% break %}" + tail:                                  true,
		"{% for a in b %}{% for c in d recursive %}" + tail + "{% break %}" + tail:      true,
		"{% for a in b %}{% for c in d recursive %}{% else %}{% break %}" + tail + tail: false,
	} {
		if _, err := Template(src, all); (err == nil) != ok {
			t.Errorf("%s: got %v", src, err)
		}
	}
}

// An unknown filter matters only where it is reached, but only if and conditional expressions decide that.
func TestUnknownFilters(t *testing.T) {
	for src, ok := range map[string]bool{
		"{{ a|nofilter }}":                                                           false,
		"{% if a %}{{ a|nofilter }}{% endif %}":                                      true,
		"{{ a|nofilter if a }}":                                                      true,
		"{{ 1 if a|nofilter else a is notest }}":                                     true,
		"{% if a %}{% for b in c %}{{ a|nofilter }}{% endfor %}{% endif %}":          false,
		"{% if a %}{% for b in c|nofilter %}{% endfor %}{% endif %}":                 true,
		"{% for b in c %}{% if a %}{{ a|nofilter }}{% endif %}{% endfor %}":          true,
		"{% for b in c %}{{ a|nofilter }}{% endfor %}":                               false,
		"{% if a %}{{ a|nofilter }}{% endif %}{{ a|nofilter }}":                      false,
		"{% if a %}{% macro m() %}{{ a|nofilter }}{% endmacro %}{% endif %}":         false,
		"{% if a %}{% elif a is notest %}{{ a|nofilter }}{% else %}{% endif %}{{a}}": true,
	} {
		if _, err := Template(src, all); (err == nil) != ok {
			t.Errorf("%s: got %v", src, err)
		}
	}
}

// Deep sources are refused before they can overflow a stack, here or in whatever walks the tree.
func TestDepthIsBounded(t *testing.T) {
	deep := map[string]string{ // X is repeated
		"parentheses": "{{ X1 }}", "lists": "{{ X }}", "dicts": "{{ X }}", "not": "{{ X1 }}", "minus": "{{ X1 }}", "sum": "{{ 1X }}",
		"or": "{{ 1X }}", "power": "{{ 1X }}", "filters": "{{ 1X }}", "attributes": "{{ aX }}", "calls": "{{ aX }}", "subscripts": "{{ aX }}",
		"conditions": "{{ 1X }}", "arguments": "{{ X }}", "ifs": "X", "fors": "X", "macros": "X", "targets": "{% for X in a %}",
		"set targets": "{% set X = 1 %}", "elses": "{{ 1X }}", "slices": "{{ aX }}",
	}
	unit := map[string]string{
		"parentheses": "(", "lists": "[", "dicts": "{1:", "not": "not ", "minus": "-", "sum": "+1", "or": " or 1", "power": "**1", "filters": "|f",
		"attributes": ".a", "calls": "()", "subscripts": "[a", "conditions": " if 1", "arguments": "f(", "ifs": "{% if 1 %}",
		"fors": "{% for a in b %}", "macros": "{% macro m() %}", "targets": "(", "set targets": "(", "elses": " if 1 else 1", "slices": "[1:1]",
	}
	for name, frame := range deep {
		src := strings.Replace(frame, "X", strings.Repeat(unit[name], 60000), 1)
		if _, err := Template(src, all); err == nil || !strings.Contains(err.Error(), "deeper than") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// Long is not deep.
	for _, src := range []string{
		"{{ 1" + strings.Repeat(" ~ 1", 10000) + " }}", "{{ 1" + strings.Repeat(" < 1", 10000) + " }}", "{{ [1" + strings.Repeat(", 1", 10000) + "] }}",
		"{% if 0 %}" + strings.Repeat("{% elif 0 %}", 10000) + "{% endif %}", strings.Repeat("{{ 1 }}", 10000), "{{ 'a'" + strings.Repeat(" 'b'", 10000) + " }}",
	} {
		if _, err := Template(src, all); err != nil {
			t.Errorf("%.20s: %v", src, err)
		}
	}
	if _, err := Template(strings.Repeat("x", MaxSource+1), all); err == nil {
		t.Error("a source beyond MaxSource: no error")
	}
}

func TestWalkVisitsAll(t *testing.T) {
	src := `{% macro m(a=v1) %}{{ v2 }}{% endmacro %}{% for v3 in v4 if v5 %}{{ v6.a }}{% else %}{{ v7[v8] }}{% endfor %}
{% if v9 %}{{ v10[v11:v12:v13] }}{% elif v14 %}{{ v15(v16, k=v17, *v18, **v19) }}{% else %}{{ v20|f(v21) }}{% endif %}
{% set v22 = v23 is t(v24) %}{% set v25 | f(v26) %}{{ not v27 }}{% endset %}{% call v28(v29) %}{{ -v30 }}{% endcall %}
{% filter f(v31) %}{{ v32 + v33 }}{% endfilter %}{% with v34 = v35 %}{{ v36 or v37 }}{% endwith %}
{% generation %}{{ v38 < v39 }}{% endgeneration %}{{ v40 ~ v41 }}{{ v42 if v43 else v44 }}{{ (v45, [v46], {v47: v48}) }}`
	body, err := Template(src, all)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	Walk(body, func(n Node) {
		if n, ok := n.(*Name); ok {
			seen[n.Name] = true
		}
	})
	for i := 1; i <= 48; i++ {
		if v := fmt.Sprintf("v%d", i); !seen[v] {
			t.Errorf("%s is not visited", v)
		}
	}
}
