// SPDX-License-Identifier: MIT
// All of cede.
#pragma once

#include <cede/continuation.h>
#include <cede/generator.h>
#include <cede/process.h>
#include <cede/result.h>
#include <cede/stack.h>
