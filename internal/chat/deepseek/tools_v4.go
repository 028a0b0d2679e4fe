package deepseek

// What DeepSeek V4 is told about its tools, before and after their schemas. The wording is the format's
// own: that of the program in the model's checkpoints (copyright DeepSeek, MIT license), which the model was
// trained on. It must not be changed.
const (
	toolsBeforeV4 = `## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

String parameters should be specified as is and set ` + "`" + `string="true"` + "`" + `. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set ` + "`" + `string="false"` + "`" + `.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

`

	toolsAfterV4 = `

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
`
)
