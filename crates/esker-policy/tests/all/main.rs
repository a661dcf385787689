//! Promises of the policies.

mod advice;
mod bricks;
mod cluster;
mod optimum;
mod reading;
mod real_boxes;
mod staging;
