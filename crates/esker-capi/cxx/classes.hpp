// pnetcdf: the C++ classes of PnetCDF, as Esker has them, on top of its C interface.
//
// Made from crates/esker-capi/cxx and its tables; do not edit it by hand. Names, arguments and the
// order of members are PnetCDF's, so that compiled programs run on either library. A classic file
// has one group, its root: what looks for others finds nothing, and what only netCDF-4 has
// throws NcmpiException with NC_ENOTSUPPORT.
#ifndef PNETCDF_CXX_CLASSES
#define PNETCDF_CXX_CLASSES

#include <exception>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

#include <pnetcdf.h>

// Programs for PnetCDF rely on it.
using namespace std;

namespace PnetCDF {

namespace exceptions {

/// What every error is told by: the code of C and its sentence.
class NcmpiException : public std::exception {
public:
    NcmpiException(const char *complaint, const char *fileName, int lineNumber);
    NcmpiException(int errorCode, const char *complaint, const char *fileName, int lineNumber);
    NcmpiException(const NcmpiException &e) throw();
    NcmpiException &operator=(const NcmpiException &e) throw();
    virtual ~NcmpiException() throw();
    const char *what() const throw();
    int errorCode() const throw();

private:
    std::string *what_msg;
    int ec;
};

// One for each code.
@EXCEPTIONS@
} // namespace exceptions

/// Throws the exception of a code that is not NC_NOERR.
void ncmpiCheck(int retCode, const char *file, int line);
/// Enters define mode, if the file is not in it.
void ncmpiCheckDefineMode(int ncid);
/// Leaves define mode, if the file is in it.
void ncmpiCheckDataMode(int ncid);

class NcmpiGroup;
class NcmpiVar;
class NcmpiDim;

/// A type of values.
class NcmpiType {
public:
    enum ncmpiType {
        ncmpi_BYTE = NC_BYTE,
        ncmpi_CHAR = NC_CHAR,
        ncmpi_SHORT = NC_SHORT,
        ncmpi_INT = NC_INT,
        ncmpi_FLOAT = NC_FLOAT,
        ncmpi_DOUBLE = NC_DOUBLE,
        ncmpi_UBYTE = NC_UBYTE,
        ncmpi_USHORT = NC_USHORT,
        ncmpi_UINT = NC_UINT,
        ncmpi_INT64 = NC_INT64,
        ncmpi_UINT64 = NC_UINT64,
        // Of netCDF-4 alone.
        ncmpi_STRING = NC_STRING,
        ncmpi_VLEN = NC_VLEN,
        ncmpi_OPAQUE = NC_OPAQUE,
        ncmpi_ENUM = NC_ENUM,
        ncmpi_COMPOUND = NC_COMPOUND
    };

    NcmpiType();
    NcmpiType(const PnetCDF::NcmpiGroup &grp, const std::string &name);
    NcmpiType(const PnetCDF::NcmpiGroup &grp, nc_type id);
    NcmpiType(nc_type id);
    NcmpiType(const NcmpiType &rhs);
    virtual ~NcmpiType() {}
    bool operator==(const NcmpiType &) const;
    bool operator!=(const NcmpiType &) const;
    nc_type getId() const { return myId; }
    PnetCDF::NcmpiGroup getParentGroup() const;
    /// CDL's name of the type.
    std::string getName() const;
    /// Bytes of one.
    MPI_Offset getSize() const;
    ncmpiType getTypeClass() const;
    std::string getTypeClassName() const;
    bool isNull() const { return nullObject; }
    friend bool operator<(const NcmpiType &lhs, const NcmpiType &rhs);
    friend bool operator>(const NcmpiType &lhs, const NcmpiType &rhs);

protected:
    NcmpiType &operator=(const NcmpiType &rhs);

    bool nullObject;
    nc_type myId;
    int groupId;
};

// The types of classic files, each with an object of its own.
@TYPES@
/// Types of netCDF-4, which no classic file has.
class NcmpiEnumType : public NcmpiType {
public:
    enum ncmpiEnumType {
        ncmpi_BYTE = NC_BYTE,
        ncmpi_SHORT = NC_SHORT,
        ncmpi_INT = NC_INT,
        ncmpi_UBYTE = NC_UBYTE,
        ncmpi_USHORT = NC_USHORT,
        ncmpi_UINT = NC_UINT,
        ncmpi_INT64 = NC_INT64,
        ncmpi_UINT64 = NC_UINT64
    };

    NcmpiEnumType();
    NcmpiEnumType(const NcmpiGroup &grp, const std::string &name);
    NcmpiEnumType(const NcmpiType &ncmpiType);
    NcmpiEnumType &operator=(const NcmpiEnumType &rhs);
    NcmpiEnumType &operator=(const NcmpiType &rhs);
    NcmpiEnumType(const NcmpiEnumType &rhs);
    ~NcmpiEnumType() {}
    template <class T> void addMember(const std::string &, T) { ncmpiCheck(NC_ENOTSUPPORT, __FILE__, __LINE__); }
    MPI_Offset getMemberCount() const;
    std::string getMemberNameFromIndex(int index) const;
    template <class T> std::string getMemberNameFromValue(const T) const {
        ncmpiCheck(NC_ENOTSUPPORT, __FILE__, __LINE__);
        return std::string();
    }
    template <class T> void getMemberValue(int, T &) const { ncmpiCheck(NC_ENOTSUPPORT, __FILE__, __LINE__); }
    NcmpiType getBaseType() const;
};

class NcmpiVlenType : public NcmpiType {
public:
    NcmpiVlenType();
    NcmpiVlenType(const NcmpiGroup &grp, const std::string &name);
    NcmpiVlenType(const NcmpiType &ncmpiType);
    NcmpiVlenType &operator=(const NcmpiVlenType &rhs);
    NcmpiVlenType &operator=(const NcmpiType &rhs);
    NcmpiVlenType(const NcmpiVlenType &rhs);
    ~NcmpiVlenType() {}
    NcmpiType getBaseType() const;
};

class NcmpiOpaqueType : public NcmpiType {
public:
    NcmpiOpaqueType();
    NcmpiOpaqueType(const NcmpiGroup &grp, const std::string &name);
    NcmpiOpaqueType(const NcmpiType &ncmpiType);
    NcmpiOpaqueType &operator=(const NcmpiOpaqueType &rhs);
    NcmpiOpaqueType &operator=(const NcmpiType &rhs);
    NcmpiOpaqueType(const NcmpiOpaqueType &rhs);
    ~NcmpiOpaqueType() {}
    MPI_Offset getTypeSize() const;
};

class NcmpiCompoundType : public NcmpiType {
public:
    NcmpiCompoundType();
    NcmpiCompoundType(const NcmpiGroup &grp, const std::string &name);
    NcmpiCompoundType(const NcmpiType &ncmpiType);
    NcmpiCompoundType &operator=(const NcmpiCompoundType &rhs);
    NcmpiCompoundType &operator=(const NcmpiType &rhs);
    NcmpiCompoundType(const NcmpiCompoundType &rhs);
    bool operator==(const NcmpiCompoundType &rhs);
    ~NcmpiCompoundType() {}
    void addMember(const std::string &memName, const NcmpiType &newMemberType, MPI_Offset offset);
    void addMember(const std::string &memName, const NcmpiType &newMemberType, MPI_Offset offset,
                   const std::vector<int> &shape);
    MPI_Offset getMemberCount() const;
    NcmpiType getMember(int memberIndex) const;
    MPI_Offset getMemberOffset(const int index) const;
    int getMemberDimCount(int memberIndex) const;
    std::vector<int> getMemberShape(int memberIndex) const;
};

/// What attributes of files and of variables have in common.
class NcmpiAtt {
public:
    virtual ~NcmpiAtt() = 0;
    NcmpiAtt();
    NcmpiAtt(bool nullObject);
    NcmpiAtt(const NcmpiAtt &rhs);
    std::string getName() const { return myName; }
    MPI_Offset getAttLength() const;
    NcmpiType getType() const;
    NcmpiGroup getParentGroup() const;
    bool operator==(const NcmpiAtt &rhs) const;
    bool operator!=(const NcmpiAtt &rhs) const;
@ATT_VALUES@
    void getValues(char **dataValues) const;
    void getValues(std::string &dataValues) const;
    void getValues(void *dataValues) const;
    bool isNull() const { return nullObject; }

protected:
    NcmpiAtt &operator=(const NcmpiAtt &rhs);

    bool nullObject;
    std::string myName;
    int groupId;
    int varId;
};

class NcmpiGroupAtt : public NcmpiAtt {
public:
    NcmpiGroupAtt &operator=(const NcmpiGroupAtt &rhs);
    NcmpiGroupAtt();
    NcmpiGroupAtt(const NcmpiGroupAtt &rhs);
    NcmpiGroupAtt(const NcmpiGroup &grp, const int index);
    bool operator==(const NcmpiGroupAtt &rhs);
    friend bool operator<(const NcmpiGroupAtt &lhs, const NcmpiGroupAtt &rhs);
    friend bool operator>(const NcmpiGroupAtt &lhs, const NcmpiGroupAtt &rhs);
};

class NcmpiVarAtt : public NcmpiAtt {
public:
    NcmpiVarAtt &operator=(const NcmpiVarAtt &rhs);
    NcmpiVarAtt();
    NcmpiVarAtt(const NcmpiVarAtt &rhs);
    NcmpiVarAtt(const NcmpiGroup &grp, const NcmpiVar &ncmpiVar, const int index);
    NcmpiVar getParentVar() const;
    friend bool operator<(const NcmpiVarAtt &lhs, const NcmpiVarAtt &rhs);
    friend bool operator>(const NcmpiVarAtt &lhs, const NcmpiVarAtt &rhs);
};

/// A dimension of a file.
class NcmpiDim {
public:
    ~NcmpiDim() {}
    NcmpiDim();
    NcmpiDim(const NcmpiGroup &grp, int dimId);
    NcmpiDim &operator=(const NcmpiDim &);
    bool operator==(const NcmpiDim &rhs) const;
    bool operator!=(const NcmpiDim &rhs) const;
    NcmpiDim(const NcmpiDim &ncmpiDim);
    const std::string getName() const;
    int getId() const { return myId; }
    NcmpiGroup getParentGroup() const;
    bool isUnlimited() const;
    MPI_Offset getSize() const;
    void rename(const std::string &newName);
    bool isNull() const { return nullObject; }
    friend bool operator<(const NcmpiDim &lhs, const NcmpiDim &rhs);
    friend bool operator>(const NcmpiDim &lhs, const NcmpiDim &rhs);

private:
    bool nullObject;
    int myId;
    int groupId;
};

/// The contents of a file: dimensions, variables, attributes.
class NcmpiGroup {
public:
    enum GroupLocation {
        ChildrenGrps,
        ParentsGrps,
        ChildrenOfChildrenGrps,
        AllChildrenGrps,
        ParentsAndCurrentGrps,
        AllGrps
    };
    enum Location { Current, Parents, Children, ParentsAndCurrent, ChildrenAndCurrent, All };

    NcmpiGroup &operator=(const NcmpiGroup &rhs);
    NcmpiGroup();
    NcmpiGroup(int groupId);
    NcmpiGroup(const NcmpiGroup &rhs);
    virtual ~NcmpiGroup();
    bool operator==(const NcmpiGroup &rhs) const;
    bool operator!=(const NcmpiGroup &rhs) const;
    friend bool operator<(const NcmpiGroup &lhs, const NcmpiGroup &rhs);
    friend bool operator>(const NcmpiGroup &lhs, const NcmpiGroup &rhs);

    std::string getName(bool fullName = false) const;
    NcmpiGroup getParentGroup() const;
    int getId() const;
    int getGroupCount(NcmpiGroup::GroupLocation location = ChildrenGrps) const;
    std::multimap<std::string, NcmpiGroup> getGroups(NcmpiGroup::GroupLocation location = ChildrenGrps) const;
    std::set<NcmpiGroup> getGroups(const std::string &name,
                                   NcmpiGroup::GroupLocation location = ChildrenGrps) const;
    NcmpiGroup getGroup(const std::string &name, NcmpiGroup::GroupLocation location = ChildrenGrps) const;
    NcmpiGroup addGroup(const std::string &name) const;
    bool isNull() const { return nullObject; }
    bool isRootGroup() const;

    int getVarCount(NcmpiGroup::Location location = Current) const;
    int getRecVarCount(NcmpiGroup::Location location = Current) const;
    MPI_Offset getRecSize(NcmpiGroup::Location location = Current) const;
    int getFixVarCount(NcmpiGroup::Location location = Current) const;
    std::multimap<std::string, NcmpiVar> getVars(NcmpiGroup::Location location = Current) const;
    std::set<NcmpiVar> getVars(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiVar getVar(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiVar addVar(const std::string &name, const NcmpiType &ncmpiType) const;
    NcmpiVar addVar(const std::string &name, const std::string &typeName, const std::string &dimName) const;
    NcmpiVar addVar(const std::string &name, const NcmpiType &ncmpiType, const NcmpiDim &ncmpiDim) const;
    NcmpiVar addVar(const std::string &name, const std::string &typeName,
                    const std::vector<std::string> &dimNames) const;
    NcmpiVar addVar(const std::string &name, const NcmpiType &ncmpiType,
                    const std::vector<NcmpiDim> &ncmpiDimVector) const;

    int getAttCount(NcmpiGroup::Location location = Current) const;
    std::multimap<std::string, NcmpiGroupAtt> getAtts(NcmpiGroup::Location location = Current) const;
    std::set<NcmpiGroupAtt> getAtts(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiGroupAtt getAtt(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiGroupAtt putAtt(const std::string &name, MPI_Offset len, const char **dataValues) const;
@GROUP_PUT_ATT@
    int getDimCount(NcmpiGroup::Location location = Current) const;
    std::multimap<std::string, NcmpiDim> getDims(NcmpiGroup::Location location = Current) const;
    std::set<NcmpiDim> getDims(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiDim getDim(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiDim addDim(const std::string &name, MPI_Offset dimSize) const;
    NcmpiDim addDim(const std::string &name) const;

    int getTypeCount(NcmpiGroup::Location location = Current) const;
    int getTypeCount(NcmpiType::ncmpiType enumType, NcmpiGroup::Location location = Current) const;
    std::multimap<std::string, NcmpiType> getTypes(NcmpiGroup::Location location = Current) const;
    std::set<NcmpiType> getTypes(const std::string &name, NcmpiGroup::Location location = Current) const;
    std::set<NcmpiType> getTypes(NcmpiType::ncmpiType enumType, NcmpiGroup::Location location = Current) const;
    std::set<NcmpiType> getTypes(const std::string &name, NcmpiType::ncmpiType enumType,
                                 NcmpiGroup::Location location = Current) const;
    NcmpiType getType(const std::string &name, NcmpiGroup::Location location = Current) const;
    NcmpiEnumType addEnumType(const std::string &name, NcmpiEnumType::ncmpiEnumType basetype) const;
    NcmpiVlenType addVlenType(const std::string &name, NcmpiType &basetype) const;
    NcmpiOpaqueType addOpaqueType(const std::string &name, MPI_Offset size) const;
    NcmpiCompoundType addCompoundType(const std::string &name, MPI_Offset size) const;

protected:
    bool nullObject;
    int myId;
};

/// A file. It is closed when the object goes.
class NcmpiFile : public NcmpiGroup {
public:
    enum FileMode { read, write, replace, newFile };
    enum FileFormat { classic, classic2, nc4, nc4classic, classic5, BadFormat };
    enum FillMode { Fill = NC_FILL, NoFill = NC_NOFILL, Bad };

    NcmpiFile();
    NcmpiFile(const MPI_Comm &comm, const std::string &filePath, FileMode fMode,
              const MPI_Info &info = MPI_INFO_NULL);
    NcmpiFile(const MPI_Comm &comm, const std::string &filePath, FileMode fMode, FileFormat fFormat,
              const MPI_Info &info = MPI_INFO_NULL);
    virtual ~NcmpiFile();

    void sync();
    void flush();
    void enddef();
    FileFormat getFormat(void) const;
    void Wait_all(int num, int *array_of_requests, int *array_of_statuses);
    void Wait(int num, int *array_of_requests, int *array_of_statuses);
    void Cancel(int num, int *array_of_requests, int *array_of_statuses);
    void Buffer_attach(MPI_Offset bufsize);
    void Buffer_detach(void);
    void Inq_nreqs(int *nreqs);
    void Inq_buffer_usage(MPI_Offset *usage);
    void Inq_buffer_size(MPI_Offset *buf_size);
    void Inq_file_info(MPI_Info *info);
    void Inq_put_size(MPI_Offset *put_size);
    void Inq_get_size(MPI_Offset *get_size);
    void Inq_header_size(MPI_Offset *header_size);
    void Inq_header_extent(MPI_Offset *header_extent);
    void Inq_path(int *pathlen, char *path);
    void set_fill(FillMode fillmode, FillMode *old_modep = NULL);

private:
    // Two objects would close the file twice.
    NcmpiFile &operator=(const NcmpiGroup &rhs);
    NcmpiFile &operator=(const NcmpiFile &rhs);
    NcmpiFile(const NcmpiGroup &rhs);
    NcmpiFile(const NcmpiFile &rhs);
};

/// A variable of a file.
class NcmpiVar {
public:
    enum ChunkMode { ncmpi_CHUNKED = NC_CHUNKED, ncmpi_CONTIGUOUS = NC_CONTIGUOUS };
    enum EndianMode {
        ncmpi_ENDIAN_NATIVE = NC_ENDIAN_NATIVE,
        ncmpi_ENDIAN_LITTLE = NC_ENDIAN_LITTLE,
        ncmpi_ENDIAN_BIG = NC_ENDIAN_BIG
    };
    enum ChecksumMode { ncmpi_NOCHECKSUM = NC_NOCHECKSUM, ncmpi_FLETCHER32 = NC_FLETCHER32 };

    ~NcmpiVar() {}
    NcmpiVar();
    NcmpiVar(const NcmpiGroup &grp, const int &varId);
    NcmpiVar &operator=(const NcmpiVar &rhs);
    bool operator==(const NcmpiVar &rhs) const;
    bool operator!=(const NcmpiVar &rhs) const;
    NcmpiVar(const NcmpiVar &ncmpiVar);
    std::string getName() const;
    NcmpiGroup getParentGroup() const;
    NcmpiType getType() const;
    void rename(const std::string &newname) const;
    int getId() const;
    bool isNull() const { return nullObject; }
    friend bool operator<(const NcmpiVar &lhs, const NcmpiVar &rhs);
    friend bool operator>(const NcmpiVar &lhs, const NcmpiVar &rhs);

    int getDimCount() const;
    NcmpiDim getDim(int i) const;
    std::vector<NcmpiDim> getDims() const;

    int getAttCount() const;
    NcmpiVarAtt getAtt(const std::string &name) const;
    std::map<std::string, NcmpiVarAtt> getAtts() const;
@VAR_PUT_ATT@
    void setChunking(ChunkMode chunkMode, std::vector<MPI_Offset> &chunksizes) const;
    void getChunkingParameters(ChunkMode &chunkMode, std::vector<MPI_Offset> &chunkSizes) const;
    void setFill(bool fillMode, const void *fillValue = NULL) const;
    void getFillModeParameters(bool &fillMode, void *fillValue = NULL) const;
    template <class T> void getFillModeParameters(bool &fillMode, T &fillValue) const {
        getFillModeParameters(fillMode, static_cast<void *>(&fillValue));
    }
    void fillRec(MPI_Offset recno) const;
    void setCompression(bool enableShuffleFilter, bool enableDeflateFilter, int deflateLevel) const;
    void getCompressionParameters(bool &shuffleFilterEnabled, bool &deflateFilterEnabled, int &deflateLevel) const;
    void setEndianness(EndianMode endianMode) const;
    EndianMode getEndianness() const;
    void setChecksum(ChecksumMode checksumMode) const;
    ChecksumMode getChecksum() const;

    // Data, by the names of C's functions: all of it, one value, a part (start, count), with
    // strides, with a map of memory, and lists of parts.
@DATA@
    void Inq_file_offset(MPI_Offset *offset);

private:
    bool nullObject;
    int myId;
    int groupId;
};

} // namespace PnetCDF

#endif
