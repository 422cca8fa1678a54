-- Commands of the svc plugin; lua/svc.lua has what they do.
vim.api.nvim_create_user_command("SvcEdit", function()
  require("svc").edit(vim.api.nvim_get_current_buf())
end, { desc = "Edit this file live, together with others" })

vim.api.nvim_create_user_command("SvcLeave", function()
  require("svc").leave(vim.api.nvim_get_current_buf())
end, { desc = "Edit this file alone again" })
