// SPDX-License-Identifier: Apache-2.0
// The data wing: decode → transform → dataset → sampler → loader. Everything in it is a pure
// function of files, seed, epoch and sample.
#pragma once

#include "data/dataset/dataset.hpp"          // images with labels, numbered
#include "data/dataset/image_files.hpp"      // ImageFolder, OxfordPets
#include "data/dataset/labelled_files.hpp"   // which files there are; splitting, relabelling
#include "data/dataset/open_folder.hpp"      // what is meant by `train DIR`
#include "data/decode/decode.hpp"            // bytes to Image
#include "data/decode/image.hpp"             // 8-bit RGB
#include "data/loader/data_loader.hpp"       // batches
#include "data/sampler/epoch_order.hpp"      // shuffling
#include "data/sampler/sharding.hpp"         // who gets which samples
#include "data/transform/crop.hpp"           // CenterCrop, RandomResizedCrop
#include "data/transform/flip.hpp"           // RandomHorizontalFlip
#include "data/transform/pipeline.hpp"       // transforms in order
#include "data/transform/preprocessing.hpp"  // the presets, as a value that is stored
#include "data/transform/resize.hpp"         // Resize
#include "data/transform/to_float.hpp"       // bytes to floats
