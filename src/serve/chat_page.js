'use strict';
const byId = (id) => document.getElementById(id);
const talk = byId('talk'), text = byId('text'), settings = byId('settings'), figures = byId('figures');
let messages = [];
let running = null;  // the AbortController of the answer that is being made

// Markdown to DOM nodes, never to HTML text: what a model writes cannot become an element of its choice.
function inline(parent, source) {
  const pattern = /(`+)(.+?)\1|\*\*(.+?)\*\*|\*([^\s*](?:[^*]*[^\s*])?)\*|\[([^\]]+)\]\(([^)\s]+)\)/;
  while (source) {
    const found = pattern.exec(source);
    if (!found) break;
    parent.append(source.slice(0, found.index));
    source = source.slice(found.index + found[0].length);
    const [, , code, bold, italic, label, address] = found;
    if (code !== undefined) element(parent, 'code').textContent = code;
    else if (bold !== undefined) inline(element(parent, 'strong'), bold);
    else if (italic !== undefined) inline(element(parent, 'em'), italic);
    else if (/^(https?|mailto):/i.test(address)) {
      const link = element(parent, 'a');
      link.href = address;
      link.rel = 'noopener noreferrer';
      link.target = '_blank';
      inline(link, label);
    } else parent.append(found[0]);
  }
  parent.append(source);
}

function element(parent, name) {
  const made = document.createElement(name);
  parent.append(made);
  return made;
}

function markdown(parent, source) {
  parent.replaceChildren();
  const lines = source.split('\n');
  let list = null, paragraph = null;
  const ends = () => { list = paragraph = null; };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (fence) {
      const code = [];
      while (++i < lines.length && !lines[i].trimStart().startsWith(fence[1])) code.push(lines[i]);
      element(element(parent, 'pre'), 'code').textContent = code.join('\n');
      ends();
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)/.exec(line);
    const item = /^\s*(?:([-*+])|(\d+)[.)])\s+(.*)/.exec(line);
    const quote = /^>\s?(.*)/.exec(line);
    if (!line.trim()) {
      ends();
    } else if (heading) {
      inline(element(parent, 'h' + Math.min(6, heading[1].length + 1)), heading[2]);
      ends();
    } else if (item) {
      const name = item[1] ? 'ul' : 'ol';
      if (!list || list.localName !== name) {
        list = element(parent, name);
        if (item[2]) list.start = Number(item[2]);
      }
      inline(element(list, 'li'), item[3]);
      paragraph = null;
    } else if (quote) {
      inline(element(parent, 'blockquote'), quote[1]);
      ends();
    } else {
      if (paragraph) element(paragraph, 'br');
      else paragraph = element(parent, 'p');
      inline(paragraph, line);
      list = null;
    }
  }
}

function show(role, content) {
  const article = element(talk, 'article');
  article.className = role;
  if (role === 'assistant') markdown(article, content);
  else article.textContent = content;
  article.scrollIntoView({block: 'end'});
  return article;
}

function headers() {
  const key = settings.elements.key.value;
  return key ? {Authorization: 'Bearer ' + key} : {};
}

function requestBody() {
  const body = {messages: [...messages], stream: true, stream_options: {include_usage: true}};
  const system = settings.elements.system.value.trim();
  if (system) body.messages.unshift({role: 'system', content: system});
  for (const name of ['temperature', 'top_p', 'top_k', 'max_tokens', 'seed']) {
    const value = settings.elements[name].value;
    if (value !== '') body[name] = Number(value);
  }
  return body;
}

// The data of each server-sent event of the response.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split('\n\n');
    rest = parts.pop();
    for (const part of parts) if (part.startsWith('data: ')) yield part.slice(6);
  }
}

async function answer() {
  running = new AbortController();
  byId('send').textContent = 'Stop';
  const conversation = messages;  // another one may have begun before this answer ends
  const article = show('assistant', '');
  const begin = performance.now();
  let content = '', first = 0, usage = null, reason = '', drawn = false;
  const draw = () => {
    drawn = false;
    const atEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
    markdown(article, content);
    if (atEnd) talk.scrollTop = talk.scrollHeight;
  };
  try {
    const response = await fetch('v1/chat/completions', {
      method: 'POST',
      headers: {'Content-Type': 'application/json', ...headers()},
      body: JSON.stringify(requestBody()),
      signal: running.signal,
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const data of events(response)) {
      if (data === '[DONE]') break;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      usage = chunk.usage ?? usage;
      const choice = chunk.choices[0];
      if (!choice) continue;
      if (choice.delta.content) {
        first ||= performance.now();
        content += choice.delta.content;
        if (!drawn) drawn = requestAnimationFrame(draw);
      }
      reason = choice.finish_reason ?? reason;
    }
  } catch (error) {
    if (error.name !== 'AbortError') show('error', error.message);
    else reason = 'stopped';
  }
  draw();
  if (content) conversation.push({role: 'assistant', content});
  else article.remove();
  if (conversation === messages) say(begin, first, usage, reason);
  running = null;
  byId('send').textContent = 'Send';
}

function say(begin, first, usage, reason) {
  const parts = [];
  if (usage) {
    const seconds = (performance.now() - first) / 1000;
    parts.push(`${usage.prompt_tokens} + ${usage.completion_tokens} tokens`);
    if (usage.completion_tokens > 1) parts.push(`${((usage.completion_tokens - 1) / seconds).toFixed(1)} tokens/s`);
  }
  if (first) parts.push(`first after ${((first - begin) / 1000).toFixed(2)} s`);
  if (reason === 'length') parts.push('the answer was cut at its most tokens');
  if (reason === 'stopped') parts.push('stopped');
  figures.textContent = parts.join(' · ');
}

function fit() {
  text.style.height = 'auto';
  text.style.height = text.scrollHeight + 'px';
}

async function showModel() {
  const response = await fetch('v1/models', {headers: headers()});
  const body = await response.json();
  if (!response.ok) {
    byId('model').textContent = body.error.message;
    if (response.status === 401) byId('show-settings').click();
    return;
  }
  const model = body.data[0];
  byId('model').textContent = `${model.id} · context ${model.max_model_len}`;
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (running) return running.abort();
  const content = text.value.trim();
  if (!content) return;
  text.value = '';
  fit();
  messages.push({role: 'user', content});
  show('user', content);
  answer();
});
text.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing || running) return;
  event.preventDefault();
  byId('ask').requestSubmit();
});
text.addEventListener('input', fit);
byId('reset').addEventListener('click', () => {
  running?.abort();
  messages = [];
  talk.replaceChildren();
  figures.textContent = '';
  text.focus();
});
byId('show-settings').addEventListener('click', (event) => {
  settings.hidden = !settings.hidden;
  event.currentTarget.setAttribute('aria-expanded', String(!settings.hidden));
});
settings.addEventListener('submit', (event) => event.preventDefault());
settings.addEventListener('change', () => {
  for (const input of settings.elements) if (input.name !== 'key') localStorage.setItem('plow.' + input.name, input.value);
  if (document.activeElement.name === 'key' || settings.elements.key.value) showModel();
});
for (const input of settings.elements) if (input.name !== 'key') input.value = localStorage.getItem('plow.' + input.name) ?? '';
showModel();
