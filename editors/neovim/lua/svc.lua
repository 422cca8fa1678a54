-- Edits a file of a folder that svc keeps, live, together with others (docs/guide/editors.md).
--
-- The agent of svc listens on a socket and speaks JSON lines. This side sends what was changed as splices, in
-- bytes of UTF-8, and makes the agent's changes if it has changed nothing itself since; else the agent sends
-- them again.

local M = {}

M.command = "svc" -- the program

local OPEN_SECONDS = 10 -- that the agent may take to send the text
local KEPT_SECONDS = 5 -- that :write waits for the agent
local AGAIN_MS, TRIES = 500, 20 -- between two tries to reach an agent again; tries
local MOST = 1024 * 1024 -- bytes of a text

local open = {} -- buffer → what is known of its edit
local space = vim.api.nvim_create_namespace("svc")

local function say(words, level)
  vim.notify("svc: " .. words, level or vim.log.levels.INFO)
end

local function text_of(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, true)
  if #lines == 1 and lines[1] == "" then
    return ""
  end
  return table.concat(lines, "\n") .. (vim.bo[buffer].endofline and "\n" or "")
end

local function lines_of(text)
  local whole = text:sub(-1) == "\n" and text:sub(1, -2) or text
  return vim.split(whole, "\n", { plain = true })
end

local function inside(text, at) -- whether the byte after `at` is in the middle of a character
  local byte = text:byte(at + 1)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

-- The largest count up to `most` for which `holds(known, count)`; it holds for `known`, which is smaller.
local function largest(most, holds)
  local low, high = 0, most
  while low < high do
    local middle = math.floor((low + high + 1) / 2)
    if holds(low, middle) then
      low = middle
    else
      high = middle - 1
    end
  end
  return low
end

local function same_start(one, two)
  return largest(math.min(#one, #two), function(known, count)
    return one:sub(known + 1, count) == two:sub(known + 1, count)
  end)
end

local function same_end(one, two, most)
  return largest(most, function(known, count)
    return one:sub(#one - count + 1, #one - known) == two:sub(#two - count + 1, #two - known)
  end)
end

-- The splice that makes `new` of `old`.
local function difference(old, new)
  local start = same_start(old, new)
  while start > 0 and (inside(old, start) or inside(new, start)) do
    start = start - 1
  end
  local rest = same_end(old, new, math.min(#old, #new) - start)
  while rest > 0 and (inside(old, #old - rest) or inside(new, #new - rest)) do
    rest = rest - 1
  end
  return { start, #old - rest - start, new:sub(start + 1, #new - rest) }
end

local function place_of(text, offset) -- row and column from 0
  local before = text:sub(1, offset)
  local _, row = before:gsub("\n", "")
  return row, #before - (before:match(".*\n()") or 1) + 1
end

-- Show `new` in the lines that differ; for changes of the last newline and of an empty text.
local function set_lines(buffer, old, new)
  local was, is = lines_of(old), lines_of(new)
  local first = 0
  while first < #was and first < #is and was[first + 1] == is[first + 1] do
    first = first + 1
  end
  local last = 0
  while last < #was - first and last < #is - first and was[#was - last] == is[#is - last] do
    last = last + 1
  end
  vim.api.nvim_buf_set_lines(buffer, first, #was - last, true, vim.list_slice(is, first + 1, #is - last))
  vim.bo[buffer].endofline = new:sub(-1) == "\n"
end

local function make_splice(buffer, text, splice)
  local start, stop, word = splice[1], splice[1] + splice[2], splice[3]
  local new = text:sub(1, start) .. word .. text:sub(stop + 1)
  if text:sub(-1) == "\n" and new:sub(-1) == "\n" and stop < #text then
    local row, column = place_of(text, start)
    local to_row, to_column = place_of(text, stop)
    vim.api.nvim_buf_set_text(buffer, row, column, to_row, to_column, vim.split(word, "\n", { plain = true }))
  else
    set_lines(buffer, text, new)
  end
  return new
end

local function send(edit, message)
  if edit.pipe and not edit.pipe:is_closing() then
    edit.pipe:write(vim.json.encode(message) .. "\n")
  end
end

local function cursor(edit)
  if vim.api.nvim_get_current_buf() ~= edit.buffer then
    return nil
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_buf_get_lines(edit.buffer, row - 1, row, false)[1] or ""
  return { row, vim.fn.strchars(line:sub(1, column)) + 1 }
end

-- Send what was changed since the last time.
local function flush(edit)
  if edit.text == nil then
    return
  end
  local now = text_of(edit.buffer)
  if now == edit.text then
    return
  end
  edit.made = edit.made + 1
  local here = cursor(edit) or { 0, 0 }
  send(edit, {
    n = edit.made,
    seen = edit.seen,
    splices = { difference(edit.text, now) },
    line = here[1],
    col = here[2],
  })
  edit.text = now
end

local function show_people(edit, people)
  vim.api.nvim_buf_clear_namespace(edit.buffer, space, 0, -1)
  local count = vim.api.nvim_buf_line_count(edit.buffer)
  for _, one in ipairs(people) do
    if one.line and one.line > 0 and one.line <= count then
      vim.api.nvim_buf_set_extmark(edit.buffer, space, one.line - 1, 0, {
        virt_text = { { "◂ @" .. one.who, "Comment" } },
      })
    end
  end
end

local function take(edit, event)
  if event.event == "text" then
    local shown = text_of(edit.buffer)
    edit.changing = true
    if shown ~= event.text then
      set_lines(edit.buffer, shown, event.text)
    end
    edit.changing = false
    edit.text = event.text
    vim.bo[edit.buffer].modified = false
  elseif event.event == "change" then
    flush(edit)
    if (event.n or 0) ~= edit.made then
      return -- it comes again for the text as it is now
    end
    edit.changing = true
    for _, splice in ipairs(event.splices) do
      edit.text = make_splice(edit.buffer, edit.text, splice)
    end
    edit.changing = false
    edit.seen = event.change
    send(edit, { seen = edit.seen })
  elseif event.event == "kept" then
    edit.kept = event.n or 0
    if edit.kept == edit.made and text_of(edit.buffer) == edit.text then
      vim.bo[edit.buffer].modified = false
    end
  elseif event.event == "people" then
    show_people(edit, event.people or {})
  elseif event.event == "notice" then
    say(event.detail, vim.log.levels.WARN)
  elseif event.event == "ended" or event.error then
    edit.over = true
    say(event.detail or event.error, vim.log.levels.WARN)
    M.leave(edit.buffer)
  end
end

local connect

-- What the buffer has and the agent perhaps not is in the file first: a save, as of any editor. No key comes
-- between this and the text of the next agent. `:write!` would ask whether to write, since the agent has
-- changed the file, and wait for an answer. Returns whether the file has it.
local function save(edit)
  local now = text_of(edit.buffer)
  if not edit.unsure and now == edit.last then
    return true
  end
  local file, why = io.open(vim.api.nvim_buf_get_name(edit.buffer), "wb")
  local written = file ~= nil and file:write(now)
  if file ~= nil and file:close() and written then
    edit.unsure, edit.last = false, now -- saved again, it would take away what came since
    return true
  end
  say("the file cannot be written; this buffer has what was typed: " .. (why or "is the disk full?"), vim.log.levels.ERROR)
  return false
end

local function again(edit, tries)
  if edit.over or open[edit.buffer] ~= edit then
    return
  end
  if tries == 0 then
    say("the agent does not come back; this file is edited alone now", vim.log.levels.WARN)
    M.leave(edit.buffer)
    return
  end
  vim.defer_fn(function()
    if edit.over or open[edit.buffer] ~= edit then
      return
    end
    if not save(edit) then
      M.leave(edit.buffer)
    elseif not connect(edit) then
      again(edit, tries - 1)
    end
  end, AGAIN_MS)
end

local function hung_up(edit)
  if edit.over or open[edit.buffer] ~= edit then
    return
  end
  edit.pipe:close()
  edit.unsure, edit.last = edit.kept < edit.made, edit.text
  edit.text = nil
  again(edit, TRIES)
end

local function listen(edit)
  local pipe, rest = edit.pipe, ""
  pipe:read_start(function(failed, data)
    if failed or not data then
      vim.schedule(function()
        if edit.pipe == pipe then
          hung_up(edit)
        end
      end)
      return
    end
    local lines = vim.split(rest .. data, "\n", { plain = true })
    rest = table.remove(lines)
    vim.schedule(function()
      for _, line in ipairs(lines) do
        if open[edit.buffer] == edit and edit.pipe == pipe then
          take(edit, vim.json.decode(line, { luanil = { object = true } }))
        end
      end
    end)
  end)
end

-- Returns whether an agent was found.
connect = function(edit)
  local file = vim.api.nvim_buf_get_name(edit.buffer)
  local found = vim.fn.system({ M.command, "watch", "socket", vim.fn.fnamemodify(file, ":h"), "--json", "socket,folder" })
  if vim.v.shell_error ~= 0 then
    edit.why = vim.trim(found)
    return false
  end
  local at = vim.json.decode(found)
  local whole = vim.loop.fs_realpath(file)
  if whole == nil or whole:sub(1, #at.folder + 1) ~= at.folder .. "/" then
    edit.why = "the file is not in the folder " .. at.folder
    return false
  end
  edit.made, edit.seen, edit.kept = 0, 0, 0
  edit.pipe = vim.loop.new_pipe(false)
  local done, failed = false, nil
  edit.pipe:connect(at.socket, function(error)
    done, failed = true, error
  end)
  vim.wait(2000, function()
    return done
  end, 10)
  if not done or failed then
    edit.why = "the agent does not answer: " .. (failed or "nobody listens")
    edit.pipe:close()
    return false
  end
  listen(edit)
  send(edit, { ["do"] = "edit", folder = at.folder, path = whole:sub(#at.folder + 2), unit = "bytes" })
  vim.wait(OPEN_SECONDS * 1000, function() -- keys wait meanwhile, so the buffer stays as the file is
    return edit.text ~= nil or edit.over
  end, 10)
  return edit.text ~= nil or edit.over
end

-- :write waits until the agent has everything; the agent writes the file.
local function write(edit)
  flush(edit)
  local kept = vim.wait(KEPT_SECONDS * 1000, function()
    return edit.text ~= nil and edit.kept >= edit.made
  end, 10)
  if kept then
    vim.bo[edit.buffer].modified = false
    say("saved")
  else
    say("the agent has not kept the last edits yet; write again", vim.log.levels.ERROR)
  end
end

local function refusal(buffer)
  if open[buffer] then
    return "this file is edited live already"
  end
  if vim.api.nvim_buf_get_name(buffer) == "" or vim.bo[buffer].buftype ~= "" then
    return "this is not a file"
  end
  if vim.bo[buffer].fileformat ~= "unix" or vim.bo[buffer].bomb or not vim.tbl_contains({ "", "utf-8" }, vim.bo[buffer].fileencoding) then
    return "only texts in UTF-8 with unix lines are edited live; see 'fileformat', 'bomb' and 'fileencoding'"
  end
  if vim.bo[buffer].readonly or not vim.bo[buffer].modifiable then
    return "the buffer is read-only"
  end
  if vim.bo[buffer].modified then
    return "write the file first"
  end
  if #text_of(buffer) > MOST then
    return "the text has more than 1 MiB"
  end
  return nil
end

function M.edit(buffer)
  local why = refusal(buffer)
  if why then
    say(why, vim.log.levels.ERROR)
    return
  end
  local edit = { buffer = buffer, made = 0, seen = 0, kept = 0, changing = false, over = false }
  open[buffer] = edit
  if not connect(edit) then
    open[buffer] = nil
    say(edit.why or "the agent does not send the text", vim.log.levels.ERROR)
    return
  end
  if edit.over then
    return
  end
  edit.fixes = vim.bo[buffer].fixendofline
  vim.bo[buffer].fixendofline = false -- the last line is as the text has it
  local waiting = false
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function()
      if open[buffer] ~= edit then
        return true -- detach
      end
      if not edit.changing and not waiting then
        waiting = true
        vim.schedule(function()
          waiting = false
          if open[buffer] == edit then
            flush(edit)
          end
        end)
      end
    end,
    on_detach = function()
      vim.schedule(function()
        M.leave(buffer)
      end)
    end,
  })
  edit.group = vim.api.nvim_create_augroup("svc" .. buffer, { clear = true })
  local function on(event, act)
    vim.api.nvim_create_autocmd(event, { group = edit.group, buffer = buffer, callback = act })
  end
  on("BufWriteCmd", function()
    write(edit)
  end)
  on("FileChangedShell", function()
    vim.v.fcs_choice = "" -- the agent wrote it, and told what it wrote
  end)
  on({ "CursorMoved", "CursorMovedI" }, function()
    local here = cursor(edit)
    if here and edit.text and text_of(buffer) == edit.text then
      send(edit, { seen = edit.seen, line = here[1], col = here[2] })
    end
  end)
end

function M.leave(buffer)
  local edit = open[buffer]
  if edit == nil then
    return
  end
  flush(edit)
  open[buffer] = nil
  if edit.group then
    vim.api.nvim_del_augroup_by_id(edit.group)
  end
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
    vim.bo[buffer].fixendofline = edit.fixes ~= false
  end
  if edit.pipe and not edit.pipe:is_closing() then
    edit.pipe:close()
  end
end

return M
