// The C++ classes of PnetCDF on the C functions of Esker's libpnetcdf.so. Made from
// crates/esker-capi/cxx and its tables; do not edit it by hand. It is compiled once for each MPI,
// whose types are part of the names of functions; what no type of MPI is in comes out the same.
#include "pnetcdf"

#include <cstring>
#include <sstream>

namespace PnetCDF {

// In a macro, so that an exception names the line that made the call.
#define check(call) ncmpiCheck(call, __FILE__, __LINE__)
#define in_define_mode(ncid) ncmpiCheckDefineMode(ncid)
#define in_data_mode(ncid) ncmpiCheckDataMode(ncid)
#define not_in_classic_files() check(NC_ENOTSUPPORT)

// ---- errors ----

namespace {
// A sentence with its place; none if there is no memory for it.
std::string *sentence(const char *complaint, const char *file, int line) {
    try {
        std::ostringstream text;
        text << (complaint ? complaint : "") << "\nfile: " << (file ? file : "") << "  line:" << line;
        return new std::string(text.str());
    } catch (...) {
        return NULL;
    }
}

std::string *copied(const std::string *text) {
    try {
        return text ? new std::string(*text) : NULL;
    } catch (...) {
        return NULL;
    }
}
} // namespace

namespace exceptions {
NcmpiException::NcmpiException(const char *complaint, const char *fileName, int lineNumber)
    : what_msg(sentence(complaint, fileName, lineNumber)), ec(0) {}

NcmpiException::NcmpiException(int errorCode, const char *complaint, const char *fileName, int lineNumber)
    : what_msg(sentence(complaint, fileName, lineNumber)), ec(errorCode) {}

NcmpiException::NcmpiException(const NcmpiException &e) throw()
    : std::exception(e), what_msg(copied(e.what_msg)), ec(e.ec) {}

NcmpiException &NcmpiException::operator=(const NcmpiException &e) throw() {
    if (this != &e) {
        delete what_msg;
        what_msg = copied(e.what_msg);
        ec = e.ec;
    }
    return *this;
}

NcmpiException::~NcmpiException() throw() { delete what_msg; }

const char *NcmpiException::what() const throw() { return what_msg ? what_msg->c_str() : ""; }

int NcmpiException::errorCode() const throw() { return ec; }

@EXCEPTIONS@
} // namespace exceptions

void ncmpiCheck(int code, const char *file, int line) {
    if (code == NC_NOERR) return;
    const char *words = ncmpi_strerror(code);
    switch (code) {
@CASES@
    default: throw exceptions::NcmpiException(code, words, file, line);
    }
}

void ncmpiCheckDefineMode(int ncid) {
    int code = ncmpi_redef(ncid);
    if (code != NC_EINDEFINE) check(code);
}

void ncmpiCheckDataMode(int ncid) {
    int code = ncmpi_enddef(ncid);
    if (code != NC_ENOTINDEFINE) check(code);
}

// ---- types ----

@TYPES@
NcmpiType::NcmpiType() : nullObject(true), myId(NC_NAT), groupId(-1) {}

NcmpiType::NcmpiType(nc_type id) : nullObject(false), myId(id), groupId(0) {}

NcmpiType::NcmpiType(const NcmpiGroup &, nc_type id) : nullObject(false), myId(id), groupId(0) {}

NcmpiType::NcmpiType(const NcmpiGroup &grp, const std::string &name) : nullObject(true), myId(NC_NAT), groupId(-1) {
    *this = grp.getType(name, NcmpiGroup::ParentsAndCurrent);
}

NcmpiType::NcmpiType(const NcmpiType &rhs) : nullObject(rhs.nullObject), myId(rhs.myId), groupId(rhs.groupId) {}

NcmpiType &NcmpiType::operator=(const NcmpiType &rhs) {
    nullObject = rhs.nullObject, myId = rhs.myId, groupId = rhs.groupId;
    return *this;
}

bool NcmpiType::operator==(const NcmpiType &rhs) const {
    return nullObject || rhs.nullObject ? nullObject == rhs.nullObject : myId == rhs.myId;
}

bool NcmpiType::operator!=(const NcmpiType &rhs) const { return !(*this == rhs); }

bool operator<(const NcmpiType &lhs, const NcmpiType &rhs) { return lhs.myId < rhs.myId; }
bool operator>(const NcmpiType &lhs, const NcmpiType &rhs) { return rhs < lhs; }

namespace {
// What is known of a type.
struct Known {
    nc_type id;
    const char *name, *upper;
    MPI_Offset size;
};
const Known KNOWN[] = {
    {NC_BYTE, "byte", "ncmpi_BYTE", 1},       {NC_UBYTE, "ubyte", "ncmpi_UBYTE", 1},
    {NC_CHAR, "char", "ncmpi_CHAR", 1},       {NC_SHORT, "short", "ncmpi_SHORT", 2},
    {NC_USHORT, "ushort", "ncmpi_USHORT", 2}, {NC_INT, "int", "ncmpi_INT", 4},
    {NC_UINT, "uint", "ncmpi_UINT", 4},       {NC_INT64, "int64", "ncmpi_INT64", 8},
    {NC_UINT64, "uint64", "ncmpi_UINT64", 8}, {NC_FLOAT, "float", "ncmpi_FLOAT", 4},
    {NC_DOUBLE, "double", "ncmpi_DOUBLE", 8},
};

const Known &known(nc_type id) {
    for (const Known &one : KNOWN)
        if (one.id == id) return one;
    throw exceptions::NcBadType(ncmpi_strerror(NC_EBADTYPE), __FILE__, __LINE__);
}
} // namespace

NcmpiGroup NcmpiType::getParentGroup() const { return NcmpiGroup(); }
std::string NcmpiType::getName() const { return known(myId).name; }
MPI_Offset NcmpiType::getSize() const { return known(myId).size; }
NcmpiType::ncmpiType NcmpiType::getTypeClass() const { return static_cast<ncmpiType>(known(myId).id); }
std::string NcmpiType::getTypeClassName() const { return known(myId).upper; }
int NcmpiByte::sizeoff() { return 1; }

// Types of netCDF-4: objects that are null can be made and assigned, nothing else.
#define TYPE_OF_NETCDF4(NAME)                                                       \
    NAME::NAME() : NcmpiType() {}                                                   \
    NAME::NAME(const NcmpiGroup &, const std::string &) : NcmpiType() { not_in_classic_files(); } \
    NAME::NAME(const NcmpiType &rhs) : NcmpiType(rhs) {                             \
        if (!rhs.isNull()) not_in_classic_files();                                  \
    }                                                                               \
    NAME::NAME(const NAME &rhs) : NcmpiType(rhs) {}                                 \
    NAME &NAME::operator=(const NAME &rhs) {                                        \
        NcmpiType::operator=(rhs);                                                  \
        return *this;                                                               \
    }                                                                               \
    NAME &NAME::operator=(const NcmpiType &rhs) {                                   \
        if (!rhs.isNull()) not_in_classic_files();                                  \
        NcmpiType::operator=(rhs);                                                  \
        return *this;                                                               \
    }
TYPE_OF_NETCDF4(NcmpiEnumType)
TYPE_OF_NETCDF4(NcmpiVlenType)
TYPE_OF_NETCDF4(NcmpiOpaqueType)
TYPE_OF_NETCDF4(NcmpiCompoundType)

MPI_Offset NcmpiEnumType::getMemberCount() const { return not_in_classic_files(), 0; }
std::string NcmpiEnumType::getMemberNameFromIndex(int) const { return not_in_classic_files(), ""; }
NcmpiType NcmpiEnumType::getBaseType() const { return not_in_classic_files(), NcmpiType(); }
NcmpiType NcmpiVlenType::getBaseType() const { return not_in_classic_files(), NcmpiType(); }
MPI_Offset NcmpiOpaqueType::getTypeSize() const { return not_in_classic_files(), 0; }
bool NcmpiCompoundType::operator==(const NcmpiCompoundType &rhs) { return NcmpiType::operator==(rhs); }
void NcmpiCompoundType::addMember(const std::string &, const NcmpiType &, MPI_Offset) { not_in_classic_files(); }
void NcmpiCompoundType::addMember(const std::string &, const NcmpiType &, MPI_Offset, const std::vector<int> &) {
    not_in_classic_files();
}
MPI_Offset NcmpiCompoundType::getMemberCount() const { return not_in_classic_files(), 0; }
NcmpiType NcmpiCompoundType::getMember(int) const { return not_in_classic_files(), NcmpiType(); }
MPI_Offset NcmpiCompoundType::getMemberOffset(const int) const { return not_in_classic_files(), 0; }
int NcmpiCompoundType::getMemberDimCount(int) const { return not_in_classic_files(), 0; }
std::vector<int> NcmpiCompoundType::getMemberShape(int) const { return not_in_classic_files(), std::vector<int>(); }

// ---- attributes ----

NcmpiAtt::NcmpiAtt() : nullObject(true), groupId(-1), varId(-1) {}
NcmpiAtt::NcmpiAtt(bool null) : nullObject(null), groupId(-1), varId(-1) {}
NcmpiAtt::NcmpiAtt(const NcmpiAtt &rhs)
    : nullObject(rhs.nullObject), myName(rhs.myName), groupId(rhs.groupId), varId(rhs.varId) {}
NcmpiAtt::~NcmpiAtt() {}

NcmpiAtt &NcmpiAtt::operator=(const NcmpiAtt &rhs) {
    nullObject = rhs.nullObject, myName = rhs.myName, groupId = rhs.groupId, varId = rhs.varId;
    return *this;
}

bool NcmpiAtt::operator==(const NcmpiAtt &rhs) const {
    if (nullObject || rhs.nullObject) return nullObject == rhs.nullObject;
    return myName == rhs.myName && groupId == rhs.groupId && varId == rhs.varId;
}
bool NcmpiAtt::operator!=(const NcmpiAtt &rhs) const { return !(*this == rhs); }

NcmpiGroup NcmpiAtt::getParentGroup() const { return NcmpiGroup(groupId); }

NcmpiType NcmpiAtt::getType() const {
    nc_type type;
    check(ncmpi_inq_atttype(groupId, varId, myName.c_str(), &type));
    return NcmpiType(type);
}

MPI_Offset NcmpiAtt::getAttLength() const {
    MPI_Offset len;
    check(ncmpi_inq_attlen(groupId, varId, myName.c_str(), &len));
    return len;
}

@ATT_VALUES@
void NcmpiAtt::getValues(char **) const { not_in_classic_files(); }

void NcmpiAtt::getValues(std::string &values) const {
    std::vector<char> text(getAttLength() + 1);
    check(ncmpi_get_att_text(groupId, varId, myName.c_str(), text.data()));
    values.assign(text.data(), text.size() - 1);
}

void NcmpiAtt::getValues(void *values) const { check(ncmpi_get_att(groupId, varId, myName.c_str(), values)); }

NcmpiGroupAtt::NcmpiGroupAtt() : NcmpiAtt() {}
NcmpiGroupAtt::NcmpiGroupAtt(const NcmpiGroupAtt &rhs) : NcmpiAtt(rhs) {}
NcmpiGroupAtt::NcmpiGroupAtt(const NcmpiGroup &grp, const int index) : NcmpiAtt(false) {
    char name[NC_MAX_NAME + 1];
    groupId = grp.getId(), varId = NC_GLOBAL;
    check(ncmpi_inq_attname(groupId, varId, index, name));
    myName = name;
}
NcmpiGroupAtt &NcmpiGroupAtt::operator=(const NcmpiGroupAtt &rhs) {
    NcmpiAtt::operator=(rhs);
    return *this;
}
bool NcmpiGroupAtt::operator==(const NcmpiGroupAtt &rhs) { return NcmpiAtt::operator==(rhs); }
bool operator<(const NcmpiGroupAtt &lhs, const NcmpiGroupAtt &rhs) {
    return lhs.groupId != rhs.groupId ? lhs.groupId < rhs.groupId : lhs.myName < rhs.myName;
}
bool operator>(const NcmpiGroupAtt &lhs, const NcmpiGroupAtt &rhs) { return rhs < lhs; }

NcmpiVarAtt::NcmpiVarAtt() : NcmpiAtt() {}
NcmpiVarAtt::NcmpiVarAtt(const NcmpiVarAtt &rhs) : NcmpiAtt(rhs) {}
NcmpiVarAtt::NcmpiVarAtt(const NcmpiGroup &grp, const NcmpiVar &var, const int index) : NcmpiAtt(false) {
    char name[NC_MAX_NAME + 1];
    groupId = grp.getId(), varId = var.getId();
    check(ncmpi_inq_attname(groupId, varId, index, name));
    myName = name;
}
NcmpiVarAtt &NcmpiVarAtt::operator=(const NcmpiVarAtt &rhs) {
    NcmpiAtt::operator=(rhs);
    return *this;
}
NcmpiVar NcmpiVarAtt::getParentVar() const { return NcmpiVar(NcmpiGroup(groupId), varId); }
bool operator<(const NcmpiVarAtt &lhs, const NcmpiVarAtt &rhs) {
    if (lhs.groupId != rhs.groupId) return lhs.groupId < rhs.groupId;
    return lhs.varId != rhs.varId ? lhs.varId < rhs.varId : lhs.myName < rhs.myName;
}
bool operator>(const NcmpiVarAtt &lhs, const NcmpiVarAtt &rhs) { return rhs < lhs; }

// ---- dimensions ----

NcmpiDim::NcmpiDim() : nullObject(true), myId(-1), groupId(-1) {}
NcmpiDim::NcmpiDim(const NcmpiGroup &grp, int dimId) : nullObject(false), myId(dimId), groupId(grp.getId()) {}
NcmpiDim::NcmpiDim(const NcmpiDim &rhs) : nullObject(rhs.nullObject), myId(rhs.myId), groupId(rhs.groupId) {}
NcmpiDim &NcmpiDim::operator=(const NcmpiDim &rhs) {
    nullObject = rhs.nullObject, myId = rhs.myId, groupId = rhs.groupId;
    return *this;
}
bool NcmpiDim::operator==(const NcmpiDim &rhs) const {
    if (nullObject || rhs.nullObject) return nullObject == rhs.nullObject;
    return myId == rhs.myId && groupId == rhs.groupId;
}
bool NcmpiDim::operator!=(const NcmpiDim &rhs) const { return !(*this == rhs); }
bool operator<(const NcmpiDim &lhs, const NcmpiDim &rhs) {
    return lhs.groupId != rhs.groupId ? lhs.groupId < rhs.groupId : lhs.myId < rhs.myId;
}
bool operator>(const NcmpiDim &lhs, const NcmpiDim &rhs) { return rhs < lhs; }

NcmpiGroup NcmpiDim::getParentGroup() const { return NcmpiGroup(groupId); }

const std::string NcmpiDim::getName() const {
    char name[NC_MAX_NAME + 1];
    check(ncmpi_inq_dimname(groupId, myId, name));
    return name;
}

MPI_Offset NcmpiDim::getSize() const {
    MPI_Offset len;
    check(ncmpi_inq_dimlen(groupId, myId, &len));
    return len;
}

bool NcmpiDim::isUnlimited() const {
    int unlimited;
    check(ncmpi_inq_unlimdim(groupId, &unlimited));
    return unlimited >= 0 && unlimited == myId;
}

void NcmpiDim::rename(const std::string &newName) { check(ncmpi_rename_dim(groupId, myId, newName.c_str())); }

// ---- the contents of a file ----

namespace {
// A classic file has one group: whether a place to look in has it.
bool has_current(NcmpiGroup::Location location) {
    return location != NcmpiGroup::Parents && location != NcmpiGroup::Children;
}
bool has_current(NcmpiGroup::GroupLocation location) {
    return location == NcmpiGroup::ParentsAndCurrentGrps || location == NcmpiGroup::AllGrps;
}

// The values of a name.
template <class T> std::set<T> named(const std::multimap<std::string, T> &all, const std::string &name) {
    std::set<T> found;
    auto range = all.equal_range(name);
    for (auto one = range.first; one != range.second; ++one) found.insert(one->second);
    return found;
}

template <class T> T first_named(const std::multimap<std::string, T> &all, const std::string &name) {
    auto found = all.find(name);
    return found == all.end() ? T() : found->second;
}

void require(const NcmpiGroup &group, const char *what) {
    if (group.isNull()) throw exceptions::NcNullGrp((std::string("no file is open: ") + what).c_str(), __FILE__, __LINE__);
}
} // namespace

NcmpiGroup::NcmpiGroup() : nullObject(true), myId(-1) {}
NcmpiGroup::NcmpiGroup(int groupId) : nullObject(false), myId(groupId) {}
NcmpiGroup::NcmpiGroup(const NcmpiGroup &rhs) : nullObject(rhs.nullObject), myId(rhs.myId) {}
NcmpiGroup::~NcmpiGroup() {}
NcmpiGroup &NcmpiGroup::operator=(const NcmpiGroup &rhs) {
    nullObject = rhs.nullObject, myId = rhs.myId;
    return *this;
}
bool NcmpiGroup::operator==(const NcmpiGroup &rhs) const {
    return nullObject || rhs.nullObject ? nullObject == rhs.nullObject : myId == rhs.myId;
}
bool NcmpiGroup::operator!=(const NcmpiGroup &rhs) const { return !(*this == rhs); }
bool operator<(const NcmpiGroup &lhs, const NcmpiGroup &rhs) { return lhs.myId < rhs.myId; }
bool operator>(const NcmpiGroup &lhs, const NcmpiGroup &rhs) { return rhs < lhs; }

std::string NcmpiGroup::getName(bool) const {
    require(*this, "getName");
    return "/";
}
NcmpiGroup NcmpiGroup::getParentGroup() const {
    require(*this, "getParentGroup");
    return NcmpiGroup();
}
int NcmpiGroup::getId() const {
    require(*this, "getId");
    return myId;
}
int NcmpiGroup::getGroupCount(GroupLocation location) const {
    require(*this, "getGroupCount");
    return has_current(location) ? 1 : 0;
}
std::multimap<std::string, NcmpiGroup> NcmpiGroup::getGroups(GroupLocation location) const {
    require(*this, "getGroups");
    std::multimap<std::string, NcmpiGroup> all;
    if (has_current(location)) all.insert(std::make_pair(getName(), *this));
    return all;
}
std::set<NcmpiGroup> NcmpiGroup::getGroups(const std::string &name, GroupLocation location) const {
    return named(getGroups(location), name);
}
NcmpiGroup NcmpiGroup::getGroup(const std::string &name, GroupLocation location) const {
    return first_named(getGroups(location), name);
}
NcmpiGroup NcmpiGroup::addGroup(const std::string &) const { return not_in_classic_files(), NcmpiGroup(); }
bool NcmpiGroup::isRootGroup() const { return getName() == "/"; }

// A number that C tells of the file, 0 where the file is not looked in.
#define COUNTED(METHOD, TYPE, FUNCTION)                   \
    TYPE NcmpiGroup::METHOD(Location location) const {    \
        TYPE count = 0;                                   \
        if (!has_current(location)) return 0;             \
        require(*this, #METHOD);                          \
        check(FUNCTION(myId, &count));                    \
        return count;                                     \
    }
COUNTED(getVarCount, int, ncmpi_inq_nvars)
COUNTED(getRecVarCount, int, ncmpi_inq_num_rec_vars)
COUNTED(getFixVarCount, int, ncmpi_inq_num_fix_vars)
COUNTED(getRecSize, MPI_Offset, ncmpi_inq_recsize)
COUNTED(getAttCount, int, ncmpi_inq_natts)
COUNTED(getDimCount, int, ncmpi_inq_ndims)

std::multimap<std::string, NcmpiVar> NcmpiGroup::getVars(Location location) const {
    std::multimap<std::string, NcmpiVar> all;
    for (int i = 0, n = getVarCount(location); i < n; i++) {
        NcmpiVar var(*this, i);
        all.insert(std::make_pair(var.getName(), var));
    }
    return all;
}
std::set<NcmpiVar> NcmpiGroup::getVars(const std::string &name, Location location) const {
    return named(getVars(location), name);
}
NcmpiVar NcmpiGroup::getVar(const std::string &name, Location location) const {
    int id;
    if (!has_current(location)) return NcmpiVar();
    require(*this, "getVar");
    int code = ncmpi_inq_varid(myId, name.c_str(), &id);
    if (code == NC_ENOTVAR) return NcmpiVar();
    check(code);
    return NcmpiVar(*this, id);
}

NcmpiVar NcmpiGroup::addVar(const std::string &name, const NcmpiType &type) const {
    return addVar(name, type, std::vector<NcmpiDim>());
}
NcmpiVar NcmpiGroup::addVar(const std::string &name, const NcmpiType &type, const NcmpiDim &dim) const {
    return addVar(name, type, std::vector<NcmpiDim>(1, dim));
}
NcmpiVar NcmpiGroup::addVar(const std::string &name, const std::string &type, const std::string &dim) const {
    return addVar(name, type, std::vector<std::string>(1, dim));
}
NcmpiVar NcmpiGroup::addVar(const std::string &name, const std::string &typeName,
                            const std::vector<std::string> &dimNames) const {
    std::vector<NcmpiDim> dims;
    for (const std::string &dim : dimNames) dims.push_back(getDim(dim, ParentsAndCurrent));
    return addVar(name, getType(typeName, ParentsAndCurrent), dims);
}
NcmpiVar NcmpiGroup::addVar(const std::string &name, const NcmpiType &type, const std::vector<NcmpiDim> &dims) const {
    require(*this, "addVar");
    if (type.isNull()) throw exceptions::NcNullType("a variable needs a type", __FILE__, __LINE__);
    std::vector<int> ids;
    for (const NcmpiDim &dim : dims) {
        if (dim.isNull()) throw exceptions::NcNullDim("a variable's dimension does not exist", __FILE__, __LINE__);
        ids.push_back(dim.getId());
    }
    int id;
    in_define_mode(myId);
    check(ncmpi_def_var(myId, name.c_str(), type.getId(), static_cast<int>(ids.size()), ids.data(), &id));
    return NcmpiVar(*this, id);
}

std::multimap<std::string, NcmpiGroupAtt> NcmpiGroup::getAtts(Location location) const {
    std::multimap<std::string, NcmpiGroupAtt> all;
    for (int i = 0, n = getAttCount(location); i < n; i++) {
        NcmpiGroupAtt att(*this, i);
        all.insert(std::make_pair(att.getName(), att));
    }
    return all;
}
std::set<NcmpiGroupAtt> NcmpiGroup::getAtts(const std::string &name, Location location) const {
    return named(getAtts(location), name);
}
NcmpiGroupAtt NcmpiGroup::getAtt(const std::string &name, Location location) const {
    return first_named(getAtts(location), name);
}
NcmpiGroupAtt NcmpiGroup::putAtt(const std::string &, MPI_Offset, const char **) const {
    return not_in_classic_files(), NcmpiGroupAtt();
}
@GROUP_PUT_ATT@
std::multimap<std::string, NcmpiDim> NcmpiGroup::getDims(Location location) const {
    std::multimap<std::string, NcmpiDim> all;
    for (int i = 0, n = getDimCount(location); i < n; i++) {
        NcmpiDim dim(*this, i);
        all.insert(std::make_pair(dim.getName(), dim));
    }
    return all;
}
std::set<NcmpiDim> NcmpiGroup::getDims(const std::string &name, Location location) const {
    return named(getDims(location), name);
}
NcmpiDim NcmpiGroup::getDim(const std::string &name, Location location) const {
    int id;
    if (!has_current(location)) return NcmpiDim();
    require(*this, "getDim");
    int code = ncmpi_inq_dimid(myId, name.c_str(), &id);
    if (code == NC_EBADDIM) return NcmpiDim();
    check(code);
    return NcmpiDim(*this, id);
}
NcmpiDim NcmpiGroup::addDim(const std::string &name, MPI_Offset size) const {
    int id;
    require(*this, "addDim");
    in_define_mode(myId);
    check(ncmpi_def_dim(myId, name.c_str(), size, &id));
    return NcmpiDim(*this, id);
}
NcmpiDim NcmpiGroup::addDim(const std::string &name) const { return addDim(name, NC_UNLIMITED); }

// The types that a file defines itself: a classic one has none.
int NcmpiGroup::getTypeCount(Location) const { return 0; }
int NcmpiGroup::getTypeCount(NcmpiType::ncmpiType, Location) const { return 0; }
std::multimap<std::string, NcmpiType> NcmpiGroup::getTypes(Location) const {
    return std::multimap<std::string, NcmpiType>();
}
std::set<NcmpiType> NcmpiGroup::getTypes(const std::string &, Location) const { return std::set<NcmpiType>(); }
std::set<NcmpiType> NcmpiGroup::getTypes(NcmpiType::ncmpiType, Location) const { return std::set<NcmpiType>(); }
std::set<NcmpiType> NcmpiGroup::getTypes(const std::string &, NcmpiType::ncmpiType, Location) const {
    return std::set<NcmpiType>();
}
NcmpiType NcmpiGroup::getType(const std::string &name, Location) const {
    require(*this, "getType");
    for (const Known &one : KNOWN)
        if (name == one.name) return NcmpiType(one.id);
    return NcmpiType();
}
NcmpiEnumType NcmpiGroup::addEnumType(const std::string &, NcmpiEnumType::ncmpiEnumType) const {
    return not_in_classic_files(), NcmpiEnumType();
}
NcmpiVlenType NcmpiGroup::addVlenType(const std::string &, NcmpiType &) const {
    return not_in_classic_files(), NcmpiVlenType();
}
NcmpiOpaqueType NcmpiGroup::addOpaqueType(const std::string &, MPI_Offset) const {
    return not_in_classic_files(), NcmpiOpaqueType();
}
NcmpiCompoundType NcmpiGroup::addCompoundType(const std::string &, MPI_Offset) const {
    return not_in_classic_files(), NcmpiCompoundType();
}

// ---- files ----

namespace {
int opened(const MPI_Comm &comm, const std::string &path, NcmpiFile::FileMode mode, int format, const MPI_Info &info) {
    int ncid = -1;
    switch (mode) {
    case NcmpiFile::read: check(ncmpi_open(comm, path.c_str(), NC_NOWRITE, info, &ncid)); break;
    case NcmpiFile::write: check(ncmpi_open(comm, path.c_str(), NC_WRITE, info, &ncid)); break;
    case NcmpiFile::replace: check(ncmpi_create(comm, path.c_str(), format | NC_CLOBBER, info, &ncid)); break;
    case NcmpiFile::newFile: check(ncmpi_create(comm, path.c_str(), format | NC_NOCLOBBER, info, &ncid)); break;
    default: check(NC_EINVAL);
    }
    return ncid;
}

int flags(NcmpiFile::FileFormat format) {
    switch (format) {
    case NcmpiFile::classic: return 0;
    case NcmpiFile::classic2: return NC_64BIT_OFFSET;
    case NcmpiFile::classic5: return NC_64BIT_DATA;
    case NcmpiFile::nc4: return NC_NETCDF4;
    case NcmpiFile::nc4classic: return NC_NETCDF4 | NC_CLASSIC_MODEL;
    default: throw exceptions::NcNotNCF(ncmpi_strerror(NC_ENOTNC), __FILE__, __LINE__);
    }
}
} // namespace

NcmpiFile::NcmpiFile() : NcmpiGroup() {}
NcmpiFile::NcmpiFile(const MPI_Comm &comm, const std::string &path, FileMode mode, const MPI_Info &info) {
    myId = opened(comm, path, mode, 0, info);
    nullObject = false;
}
NcmpiFile::NcmpiFile(const MPI_Comm &comm, const std::string &path, FileMode mode, FileFormat format,
                     const MPI_Info &info) {
    myId = opened(comm, path, mode, flags(format), info);
    nullObject = false;
}
NcmpiFile::~NcmpiFile() {
    // A destructor may not throw; it runs while another exception is on its way, too.
    int code = nullObject ? NC_NOERR : ncmpi_close(myId);
    if (code != NC_NOERR) std::cerr << "closing the file: " << ncmpi_strerror(code) << std::endl;
}

void NcmpiFile::sync() { check(ncmpi_sync(myId)); }
void NcmpiFile::flush() { check(ncmpi_flush(myId)); }
void NcmpiFile::enddef() { check(ncmpi_enddef(myId)); }

NcmpiFile::FileFormat NcmpiFile::getFormat(void) const {
    int format;
    check(ncmpi_inq_format(myId, &format));
    switch (format) {
    case NC_FORMAT_CLASSIC: return classic;
    case NC_FORMAT_CDF2: return classic2;
    case NC_FORMAT_CDF5: return classic5;
    case NC_FORMAT_NETCDF4: return nc4;
    case NC_FORMAT_NETCDF4_CLASSIC: return nc4classic;
    default: return BadFormat;
    }
}

void NcmpiFile::Wait_all(int num, int *requests, int *statuses) {
    check(ncmpi_wait_all(myId, num, requests, statuses));
}
void NcmpiFile::Wait(int num, int *requests, int *statuses) { check(ncmpi_wait(myId, num, requests, statuses)); }
void NcmpiFile::Cancel(int num, int *requests, int *statuses) { check(ncmpi_cancel(myId, num, requests, statuses)); }
void NcmpiFile::Buffer_attach(MPI_Offset bufsize) { check(ncmpi_buffer_attach(myId, bufsize)); }
void NcmpiFile::Buffer_detach(void) { check(ncmpi_buffer_detach(myId)); }
void NcmpiFile::Inq_nreqs(int *nreqs) { check(ncmpi_inq_nreqs(myId, nreqs)); }
void NcmpiFile::Inq_buffer_usage(MPI_Offset *usage) { check(ncmpi_inq_buffer_usage(myId, usage)); }
void NcmpiFile::Inq_buffer_size(MPI_Offset *size) { check(ncmpi_inq_buffer_size(myId, size)); }
void NcmpiFile::Inq_file_info(MPI_Info *info) { check(ncmpi_inq_file_info(myId, info)); }
void NcmpiFile::Inq_put_size(MPI_Offset *size) { check(ncmpi_inq_put_size(myId, size)); }
void NcmpiFile::Inq_get_size(MPI_Offset *size) { check(ncmpi_inq_get_size(myId, size)); }
void NcmpiFile::Inq_header_size(MPI_Offset *size) { check(ncmpi_inq_header_size(myId, size)); }
void NcmpiFile::Inq_header_extent(MPI_Offset *extent) { check(ncmpi_inq_header_extent(myId, extent)); }
void NcmpiFile::Inq_path(int *pathlen, char *path) { check(ncmpi_inq_path(myId, pathlen, path)); }

void NcmpiFile::set_fill(FillMode mode, FillMode *old_mode) {
    int old;
    check(ncmpi_set_fill(myId, mode, &old));
    if (old_mode != NULL) *old_mode = old == NC_FILL ? Fill : NoFill;
}

// ---- variables ----

NcmpiVar::NcmpiVar() : nullObject(true), myId(-1), groupId(-1) {}
NcmpiVar::NcmpiVar(const NcmpiGroup &grp, const int &varId) : nullObject(false), myId(varId), groupId(grp.getId()) {}
NcmpiVar::NcmpiVar(const NcmpiVar &rhs) : nullObject(rhs.nullObject), myId(rhs.myId), groupId(rhs.groupId) {}
NcmpiVar &NcmpiVar::operator=(const NcmpiVar &rhs) {
    nullObject = rhs.nullObject, myId = rhs.myId, groupId = rhs.groupId;
    return *this;
}
bool NcmpiVar::operator==(const NcmpiVar &rhs) const {
    if (nullObject || rhs.nullObject) return nullObject == rhs.nullObject;
    return myId == rhs.myId && groupId == rhs.groupId;
}
bool NcmpiVar::operator!=(const NcmpiVar &rhs) const { return !(*this == rhs); }
bool operator<(const NcmpiVar &lhs, const NcmpiVar &rhs) {
    return lhs.groupId != rhs.groupId ? lhs.groupId < rhs.groupId : lhs.myId < rhs.myId;
}
bool operator>(const NcmpiVar &lhs, const NcmpiVar &rhs) { return rhs < lhs; }

std::string NcmpiVar::getName() const {
    char name[NC_MAX_NAME + 1];
    check(ncmpi_inq_varname(groupId, myId, name));
    return name;
}
NcmpiGroup NcmpiVar::getParentGroup() const { return NcmpiGroup(groupId); }
int NcmpiVar::getId() const { return myId; }
NcmpiType NcmpiVar::getType() const {
    // As in PnetCDF, a variable that is none has a type that is none.
    if (nullObject) return NcmpiType();
    nc_type type;
    check(ncmpi_inq_vartype(groupId, myId, &type));
    return NcmpiType(type);
}
void NcmpiVar::rename(const std::string &name) const { check(ncmpi_rename_var(groupId, myId, name.c_str())); }

int NcmpiVar::getDimCount() const {
    int count;
    check(ncmpi_inq_varndims(groupId, myId, &count));
    return count;
}
std::vector<NcmpiDim> NcmpiVar::getDims() const {
    std::vector<int> ids(getDimCount());
    std::vector<NcmpiDim> dims;
    check(ncmpi_inq_vardimid(groupId, myId, ids.data()));
    for (int id : ids) dims.push_back(NcmpiDim(getParentGroup(), id));
    return dims;
}
NcmpiDim NcmpiVar::getDim(int i) const {
    std::vector<NcmpiDim> dims = getDims();
    if (i < 0 || static_cast<size_t>(i) >= dims.size()) check(NC_EBADDIM);
    return dims[i];
}

int NcmpiVar::getAttCount() const {
    int count;
    check(ncmpi_inq_varnatts(groupId, myId, &count));
    return count;
}
std::map<std::string, NcmpiVarAtt> NcmpiVar::getAtts() const {
    std::map<std::string, NcmpiVarAtt> all;
    for (int i = 0, n = getAttCount(); i < n; i++) {
        NcmpiVarAtt att(getParentGroup(), *this, i);
        all.insert(std::make_pair(att.getName(), att));
    }
    return all;
}
NcmpiVarAtt NcmpiVar::getAtt(const std::string &name) const {
    int index;
    check(ncmpi_inq_attid(groupId, myId, name.c_str(), &index));
    return NcmpiVarAtt(getParentGroup(), *this, index);
}
@VAR_PUT_ATT@
void NcmpiVar::setFill(bool fillMode, const void *fillValue) const {
    check(ncmpi_def_var_fill(groupId, myId, !fillMode, fillValue));
}
void NcmpiVar::getFillModeParameters(bool &fillMode, void *fillValue) const {
    int no_fill;
    check(ncmpi_inq_var_fill(groupId, myId, &no_fill, fillValue));
    fillMode = no_fill == 0;
}
void NcmpiVar::fillRec(MPI_Offset recno) const {
    in_data_mode(groupId);
    check(ncmpi_fill_var_rec(groupId, myId, recno));
}

void NcmpiVar::setChunking(ChunkMode, std::vector<MPI_Offset> &) const { not_in_classic_files(); }
void NcmpiVar::getChunkingParameters(ChunkMode &, std::vector<MPI_Offset> &) const { not_in_classic_files(); }
void NcmpiVar::setCompression(bool, bool, int) const { not_in_classic_files(); }
void NcmpiVar::getCompressionParameters(bool &, bool &, int &) const { not_in_classic_files(); }
void NcmpiVar::setEndianness(EndianMode) const { not_in_classic_files(); }
NcmpiVar::EndianMode NcmpiVar::getEndianness() const { return not_in_classic_files(), ncmpi_ENDIAN_BIG; }
void NcmpiVar::setChecksum(ChecksumMode) const { not_in_classic_files(); }
NcmpiVar::ChecksumMode NcmpiVar::getChecksum() const { return not_in_classic_files(), ncmpi_NOCHECKSUM; }

void NcmpiVar::Inq_file_offset(MPI_Offset *offset) { check(ncmpi_inq_varoffset(groupId, myId, offset)); }

@DATA@
} // namespace PnetCDF

// Templates in PnetCDF's header call these.
int ncmpi_insert_enum(int, nc_type, const char *, const void *) { return NC_ENOTSUPPORT; }
int ncmpi_inq_enum_ident(int, nc_type, long long, char *) { return NC_ENOTSUPPORT; }
int ncmpi_inq_enum_member(int, nc_type, int, char *, void *) { return NC_ENOTSUPPORT; }
