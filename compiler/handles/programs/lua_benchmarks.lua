-- SPDX-License-Identifier: MIT
-- What Lua programs spend their time with, one kind at a time; lua_benchmarks.lua NAME SIZE prints an answer.
local kinds = {}

function kinds.calls(n)
    local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
    return fib(n)
end

-- Many small tables that live for a while.
function kinds.trees(depth)
    local function make(d) if d == 0 then return {} end return {make(d - 1), make(d - 1)} end
    local function count(t) if not t[1] then return 1 end return 1 + count(t[1]) + count(t[2]) end
    local long, total = make(depth), 0
    for _ = 1, 20 do total = total + count(make(depth - 2)) end
    return total + count(long)
end

function kinds.strings(n)
    local words, seen = {}, {}
    for i = 1, n * 400 do
        local word = ("%x-%d"):format(i * 2654435761 % 65536, i % 97)
        seen[word] = (seen[word] or 0) + 1
        words[#words + 1] = word:upper():gsub("%d", "<%0>")
    end
    local text, different = table.concat(words, " "), 0
    for _ in pairs(seen) do different = different + 1 end
    local length = 0
    for word in text:gmatch("%S+") do length = length + #word end
    return different, length
end

function kinds.sort(n)
    local state, all = 12345, {}
    for i = 1, n * 500 do
        state = (state * 1103515245 + 12345) % 2147483648
        all[i] = {key = state, name = "n" .. i}
    end
    table.sort(all, function(a, b) return a.key < b.key end)
    return all[1].key, all[#all].name
end

-- Arrays of numbers: a product of a matrix that is never stored with a vector, again and again.
function kinds.floats(n)
    local function a(i, j) return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1) end
    local u, v = {}, {}
    for i = 1, n do u[i] = 1.0 end
    for _ = 1, 6 do
        for i = 1, n do
            local s = 0.0
            for j = 1, n do s = s + a(i - 1, j - 1) * u[j] end
            v[i] = s
        end
        for i = 1, n do
            local s = 0.0
            for j = 1, n do s = s + a(j - 1, i - 1) * v[j] end
            u[i] = s
        end
    end
    return ("%.9g"):format(u[1] / v[1])
end

local kind = kinds[arg[1]]
local size = math.tointeger(tonumber(arg[2]))
if not kind or not size then error("usage: lua_benchmarks.lua calls|trees|strings|sort|floats SIZE") end
print(arg[1], kind(size))
