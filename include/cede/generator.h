// SPDX-License-Identifier: MIT
#pragma once
#include <cede/process.h>
