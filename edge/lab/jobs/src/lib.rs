//! Job files of fio, DiskSPD, Vdbench and Iometer: read into a plan, written from a plan.
