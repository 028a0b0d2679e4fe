package chat

// Small templates in the manner of the families, one for each way in which they differ.
const (
	// chatML prints calls and tools as JSON, and reads content and reasoning as text.
	chatML = `{%- if tools %}
<|im_start|>system
{%- if messages[0].role == 'system' %}

{{ messages[0].content }}
{%- endif %}

# Tools
{%- for tool in tools %}

{{ tool | tojson }}
{%- endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {{- '<|im_start|>assistant\n' + message.content }}
        {%- for call in message.tool_calls %}
            {{- '<tool_call>{"name": "' ~ call.function.name ~ '", "arguments": ' ~ call.function.arguments | tojson ~ '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' and message.reasoning_content %}
        {{- '<|im_start|>assistant\n<think>' + message.reasoning_content + '</think>' + message.content + '<|im_end|>\n' }}
    {%- elif message.role != 'system' or not tools %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think></think>' }}
    {%- endif %}
{%- endif %}`

	// llama trims content and knows no tools.
	llama = `{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}`

	// gemma has no system role, insists on turns, and takes text or parts.
	gemma = `{{ bos_token }}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {{- raise_exception('System role not supported') }}
    {%- endif %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' }}
    {%- if message['content'] is string %}
        {{- message['content'] | trim }}
    {%- else %}
        {%- for item in message['content'] %}
            {{- item['text'] | trim }}
        {%- endfor %}
    {%- endif %}
    {{- '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}`

	// parts goes over content without asking, through a macro.
	parts = `{%- macro show(content) %}
    {%- for part in content %}[{{ part.type }}:{{ part.text }}]{% endfor %}
{%- endmacro %}
{%- for m in messages %}{{ m.role }}{{ show(m.content) }}{% endfor %}`

	// deepseek concatenates the arguments, and prints calls only of messages whose content is null.
	deepseek = `{%- for message in messages %}
    {%- if message['role'] == 'assistant' and message['content'] is none %}
        {%- for tool in message['tool_calls'] %}
            {{- '<call>' + tool['function']['name'] + '\n' + tool['function']['arguments'] + '</call>' }}
        {%- endfor %}
    {%- elif message['role'] == 'tool' %}
        {{- '<output>' + message['content'] + '</output>' }}
    {%- else %}
        {{- '<' + message['role'] + '>' + message['content'] }}
    {%- endif %}
{%- endfor %}`

	// harmony reads reasoning as thinking, and has a developer role.
	harmony = `{%- for m in messages %}
    {%- if m.role == 'developer' or m.role == 'system' %}D:{{ m.content }};{% endif %}
    {%- if m.thinking %}T:{{ m.thinking }};{% endif %}
    {%- if m.role in ['user', 'assistant'] %}{{ m.role }}:{{ m.content }};{% endif %}
{%- endfor %}`

	// ministral wants reasoning as a part of content.
	ministral = `{%- for m in messages %}
    {%- if m.content is string %}
        {{- m.role }}:{{ m.content }};
    {%- else %}
        {%- for block in m.content %}
            {%- if block['type'] == 'text' %}
                {{- m.role }}:{{ block['text'] }};
            {%- elif block['type'] == 'thinking' %}
                {{- '[THINK]' + block['thinking'] + '[/THINK]' }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{%- endfor %}`
)
