// The C++ classes: defines, writes and reads with every family of methods, asks for everything, and
// catches what is wrong. On any number of ranks; prints what went wrong and returns 0 if nothing did.
#include <cstring>
#include <iostream>
#include <pnetcdf>

using namespace PnetCDF;
using namespace PnetCDF::exceptions;

static int me, ranks, failures;

template <class A, class B> static void is(const A &is, const B &should, const char *what, int line) {
    if (!(is == should)) {
        std::cout << "rank " << me << ", line " << line << ": " << what << " is " << is << ", not " << should << std::endl;
        failures++;
    }
}
#define IS(what, value) is(what, value, #what, __LINE__)
#define THROWS(CALL, EXCEPTION, CODE)                                          \
    try {                                                                      \
        CALL;                                                                  \
        std::cout << "line " << __LINE__ << ": nothing is thrown" << std::endl; \
        failures++;                                                            \
    } catch (EXCEPTION & e) {                                                  \
        NcmpiException copy(e);                                                \
        IS(copy.errorCode() == CODE || copy.errorCode() == 0, true);           \
        IS(std::strlen(copy.what()) > 0, true);                                \
    }

typedef std::vector<MPI_Offset> Offsets;

template <class T> static void one_type(NcmpiFile &file, const NcmpiVar &var) {
    const MPI_Offset first = 4 * me;
    Offsets start(1, first), count(1, 4), stride(1, 1), imap(1, 1), one(1, first);
    MPI_Offset begin = first, length = 4, *starts[1] = {&begin}, *counts[1] = {&length};
    T out[4], in[4];
    int req, status;
    for (int round = 0; round < 6; round++) {
        for (int k = 0; k < 4; k++) out[k] = static_cast<T>(round * 10 + k + 1), in[k] = 0;
        switch (round) {
        case 0: var.putVar_all(start, count, out), var.getVar_all(start, count, in); break;
        case 1: var.putVar_all(start, count, stride, out), var.getVar_all(start, count, stride, in); break;
        case 2: var.putVar_all(start, count, stride, imap, out), var.getVar_all(start, count, stride, imap, in); break;
        case 3: var.putVarn_all(1, starts, counts, out), var.getVarn_all(1, starts, counts, in); break;
        case 4:
            var.iputVar(start, count, out, &req), file.Wait_all(1, &req, &status), IS(status, NC_NOERR);
            var.igetVarn(1, starts, counts, in, &req), file.Wait_all(1, &req, &status), IS(status, NC_NOERR);
            break;
        default:
            var.bputVar(start, count, out, &req), file.Wait_all(1, &req, &status), IS(status, NC_NOERR);
            var.igetVar(start, count, in, &req), file.Wait_all(1, &req, &status), IS(status, NC_NOERR);
        }
        for (int k = 0; k < 4; k++) IS(in[k], out[k]);
    }
    // One value, given itself: its memory is gone before the wait.
    T single = 0;
    var.putVar_all(one, static_cast<T>(7)), var.getVar_all(one, &single), IS(single, static_cast<T>(7));
    var.iputVar(one, static_cast<T>(8), &req), file.Wait_all(1, &req, &status);
    var.getVar_all(one, &single), IS(single, static_cast<T>(8));
}

static void write(const char *path, const MPI_Info &info) {
    NcmpiFile file(MPI_COMM_WORLD, path, NcmpiFile::replace, NcmpiFile::classic5, info);
    IS(file.isNull(), false), IS(file.isRootGroup(), true), IS(file.getName(), std::string("/"));
    IS(file.getFormat(), NcmpiFile::classic5);
    NcmpiFile::FillMode old;
    file.set_fill(NcmpiFile::NoFill, &old), IS(old, NcmpiFile::NoFill);
    NcmpiDim time = file.addDim("time"), x = file.addDim("x", 4 * ranks);
    IS(time.isUnlimited(), true), IS(x.isUnlimited(), false), IS(x.getSize(), 4 * ranks);
    x.rename("ex"), IS(x.getName(), std::string("ex"));
    std::vector<NcmpiDim> both;
    both.push_back(time), both.push_back(x);
    NcmpiVar record = file.addVar("record", ncmpiDouble, both), fixed = file.addVar("fixed", ncmpiDouble, x);
    NcmpiVar named = file.addVar("named", "short", "ex"), letters = file.addVar("letters", ncmpiChar, x);
    NcmpiVar scalar = file.addVar("scalar", ncmpiInt);
    IS(named.getType().getName(), std::string("short")), IS(named.getType().getSize(), 2);
    IS(named.getType().getTypeClassName(), std::string("ncmpi_SHORT")), IS(named.getType() == ncmpiShort, true);
    double pi = 3.25, back = 0;
    record.setFill(true, &pi);
    bool fills = false;
    record.getFillModeParameters(fills, back), IS(fills, true), IS(back, pi);
    file.putAtt("title", "a title"), record.putAtt("units", "m/s"), record.putAtt("factor", ncmpiFloat, 1.5);
    int numbers[3] = {1, 2, 3};
    fixed.putAtt("numbers", ncmpiInt, 3, numbers);
    file.enddef();

    file.Buffer_attach(1 << 16);
    MPI_Offset usage, size, extent;
    file.Inq_buffer_size(&size), IS(size, 1 << 16), file.Inq_buffer_usage(&usage), IS(usage, 0);
    one_type<short>(file, fixed), one_type<int>(file, fixed), one_type<long>(file, fixed);
    one_type<float>(file, fixed), one_type<double>(file, fixed), one_type<unsigned short>(file, fixed);
    one_type<unsigned int>(file, fixed), one_type<unsigned long long>(file, fixed), one_type<long long>(file, fixed);
    file.Buffer_detach();
    Offsets start(1, 4 * me), count(1, 4);
    letters.putVar_all(start, count, "abcd");
#ifndef PEERS_HEADER /* it declares this, but its library does not have it */
    letters.putVar_all(start, std::string("A"));
#else
    letters.putVar_all(start, Offsets(1, 1), "A");
#endif
    scalar.putVar_all(&numbers[2]);
    // Flexible, with and without a count.
    int flexible[4] = {4, 3, 2, 1};
    named.putVar_all(start, count, flexible, 4, MPI_INT);
    named.putVar_all(start, count, flexible, NC_COUNT_IGNORE, MPI_INT);
    // A record, filled first.
    record.fillRec(0);
    Offsets begin(2), edges(2);
    begin[1] = 4 * me, edges[0] = 1, edges[1] = 4;
    double row[4] = {1, 2, 3, 4};
    begin[0] = 1;
    record.putVar_all(begin, edges, row);
    file.Inq_header_size(&size), file.Inq_header_extent(&extent), IS(size < extent, true);
    fixed.Inq_file_offset(&usage), IS(usage >= extent, true);
    file.sync(), file.flush();
    // Definitions after data: the class changes modes.
    file.putAtt("late", ncmpiInt, 5);
    THROWS(file.addVar("record", ncmpiInt), NcNameInUse, NC_ENAMEINUSE);
    THROWS(file.addVar("other", "nothing", "ex"), NcNullType, 0);
    THROWS(file.addVar("other", "int", "nothing"), NcNullDim, 0);
    THROWS(file.addGroup("group"), NcmpiException, NC_ENOTSUPPORT);
    THROWS(record.setCompression(true, true, 1), NcmpiException, NC_ENOTSUPPORT);
    THROWS(file.addEnumType("enum", NcmpiEnumType::ncmpi_INT), NcmpiException, NC_ENOTSUPPORT);
}

static void read(const char *path) {
    NcmpiFile file(MPI_COMM_WORLD, path, NcmpiFile::read);
    IS(file.getVarCount(), 5), IS(file.getRecVarCount(), 1), IS(file.getFixVarCount(), 4), IS(file.getDimCount(), 2);
    IS(file.getAttCount(), 2), IS(file.getVarCount(NcmpiGroup::Children), 0), IS(file.getRecSize(), 8 * 4 * ranks);
    IS(file.getGroupCount(), 0), IS(file.getGroups(NcmpiGroup::AllGrps).size(), 1u);
    IS(file.getVars().size(), 5u), IS(file.getVars("fixed").size(), 1u), IS(file.getVar("none").isNull(), true);
    IS(file.getDims().size(), 2u), IS(file.getDim("time").getSize(), 2), IS(file.getDim("none").isNull(), true);
    NcmpiVar record = file.getVar("record"), scalar = file.getVar("scalar"), named = file.getVar("named");
    IS(record.getName(), std::string("record")), IS(record.getDimCount(), 2), IS(record.getDims().size(), 2u);
    IS(record.getDim(1) == file.getDim("ex"), true), IS(record != scalar, true), IS(record.getAttCount(), 3);
    std::string text;
    file.getAtt("title").getValues(text), IS(text, std::string("a title"));
    record.getAtts()["units"].getValues(text), IS(text, std::string("m/s"));
    float factor = 0;
    record.getAtt("factor").getValues(&factor), IS(factor, 1.5f), IS(record.getAtt("factor").getParentVar() == record, true);
    IS(file.getVar("fixed").getAtt("numbers").getAttLength(), 3);
    IS(file.getAtt("none").isNull(), true);
    int number = 0;
    scalar.getVar_all(&number), IS(number, 3);
    Offsets start(1, 4 * me), count(1, 4);
    int values[4] = {0};
    named.getVar_all(start, count, values), IS(values[0], 4), IS(values[3], 1);
    char letters[5] = "";
    file.getVar("letters").getVar_all(start, count, letters), IS(std::string(letters), std::string("Abcd"));
    Offsets begin(2), edges(2);
    begin[1] = 4 * me, edges[0] = 1, edges[1] = 4;
    double row[4] = {0};
    record.getVar_all(begin, edges, row), IS(row[0], 3.25);
    begin[0] = 1, record.getVar_all(begin, edges, row), IS(row[3], 4.0);
    begin[0] = 9;
    THROWS(record.getVar_all(begin, edges, row), NcInvalidCoords, NC_EINVALCOORDS);
    THROWS(record.getAtt("none"), NcNotAtt, NC_ENOTATT);
    THROWS(record.putVar_all(begin, edges, row), NcInvalidWrite, NC_EPERM);
    THROWS(record.getDim(7), NcBadDim, NC_EBADDIM);
    NcmpiFile nothing;
    IS(nothing.isNull(), true);
    THROWS(nothing.getId(), NcNullGrp, 0);
    THROWS(NcmpiFile(MPI_COMM_WORLD, "none.nc", NcmpiFile::read), NcmpiException, NC_ENOENT);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try {
        MPI_Info info;
        MPI_Info_create(&info);
        // A value that is given itself must not be looked at later.
        MPI_Info_set(info, "nc_in_place_swap", "enable");
        write("classes.nc", info), read("classes.nc");
        MPI_Info_free(&info);
    } catch (NcmpiException &e) {
        std::cout << "rank " << me << ": " << e.what() << std::endl;
        failures++;
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
